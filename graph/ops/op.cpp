#include "graph/ops/op.h"

namespace ctk::graph {

const OpRules& rules_of(Op op) {
  switch (op) {
#define CTK_OP(name) \
  case Op::name:     \
    return rules_##name();
#include "graph/ops.def"
#undef CTK_OP
    case Op::unknown:
      break;
  }
  static const OpRules kNone;  // no rule at all: both functions are null
  return kNone;
}

}  // namespace ctk::graph
