#include "core/result.h"

namespace ctk {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::internal:
      return 1;
    case ErrorCode::config:
      return 2;
    case ErrorCode::input:
      return 3;
    case ErrorCode::budget_infeasible:
      return 4;
    case ErrorCode::gate_refused:
      return 5;
    case ErrorCode::interrupted:
      return 130;
  }
  return 1;
}

}  // namespace ctk
