// Hands problems to COIN-OR: Clp for the linear relaxation, CBC for the binary programme.
#include "search/solvers/cbc/cbc_module.h"

#include <coin/Cbc_C_Interface.h>
#include <coin/Clp_C_Interface.h>
#include <signal.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

namespace {

// CBC keeps global state and takes over Ctrl-C while it runs; both are put back in order here.
std::mutex& only_one() {
  static std::mutex mutex;
  return mutex;
}

class KeepInterruptHandler {
 public:
  KeepInterruptHandler() { sigaction(SIGINT, nullptr, &kept_); }
  ~KeepInterruptHandler() { sigaction(SIGINT, &kept_, nullptr); }

 private:
  struct sigaction kept_ {};
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int ctk_cbc_solve_lp(const CtkCbcProblem* problem,
                                                                       double* duals) try {
  const std::lock_guard lock(only_one());
  Clp_Simplex* model = Clp_newModel();
  Clp_setLogLevel(model, 0);
  Clp_loadProblem(model, problem->columns, problem->rows, problem->starts, problem->row_indices, problem->values,
                  nullptr, nullptr, problem->objective, problem->row_lower, problem->row_upper);
  Clp_initialDualSolve(model);
  const int status = Clp_status(model);
  if (status == 0) std::copy_n(Clp_dualRowSolution(model), problem->rows, duals);
  Clp_deleteModel(model);
  return status == 0 ? ctk_cbc_optimal : status == 1 ? ctk_cbc_infeasible : ctk_cbc_failed;
} catch (...) {
  return ctk_cbc_failed;
}

extern "C" __attribute__((visibility("default"))) int ctk_cbc_solve_binary(const CtkCbcProblem* problem, double* x,
                                                                           double* bound, int* has_solution) try {
  const std::lock_guard lock(only_one());
  const KeepInterruptHandler keep;
  const std::vector<double> lower(static_cast<std::size_t>(problem->columns), 0.0);
  const std::vector<double> upper(static_cast<std::size_t>(problem->columns), 1.0);
  Cbc_Model* model = Cbc_newModel();
  Cbc_setLogLevel(model, 0);
  Cbc_loadProblem(model, problem->columns, problem->rows, problem->starts, problem->row_indices, problem->values,
                  lower.data(), upper.data(), problem->objective, problem->row_lower, problem->row_upper);
  for (int column = 0; column < problem->binary_columns; ++column) Cbc_setInteger(model, column);
  const std::string nodes = std::to_string(problem->max_nodes);
  const std::pair<const char*, const char*> parameters[] = {
      {"log", "0"},   {"slog", "0"},  {"randomSeed", "1"},         {"randomCbcSeed", "1"},
      {"ratio", "0"}, {"allow", "0"}, {"maxNodes", nodes.c_str()},
  };
  for (const auto& [name, value] : parameters) Cbc_setParameter(model, name, value);
  Cbc_solve(model);
  int status = ctk_cbc_failed;
  *has_solution = 0;
  if (Cbc_isProvenInfeasible(model) != 0) {
    status = ctk_cbc_infeasible;
  } else if (Cbc_isAbandoned(model) == 0) {
    status = Cbc_isProvenOptimal(model) != 0 ? ctk_cbc_optimal : ctk_cbc_stopped;
    *bound = Cbc_getBestPossibleObjValue(model);
    const double* best = Cbc_bestSolution(model);
    if (best != nullptr) {
      std::copy_n(best, problem->columns, x);
      *has_solution = 1;
    }
    if (best == nullptr && status == ctk_cbc_optimal) status = ctk_cbc_failed;
  }
  Cbc_deleteModel(model);
  return status;
} catch (...) {
  return ctk_cbc_failed;
}
