#include "search/solvers/solvers.h"

#include <array>

namespace ctk::search {
namespace {

constexpr std::array<Solver, 2> kSolvers{{
    {"ilp", "integer programme, solved by COIN-OR CBC and certified in whole numbers", solve_ilp},
    {"brute_force", "every combination, for small problems and tests", solve_brute_force},
}};

}  // namespace

std::span<const Solver> solvers() {
  return kSolvers;
}

Result<const Solver*> find_solver(std::string_view name) {
  std::string known;
  for (const Solver& solver : kSolvers) {
    if (solver.name == name) return &solver;
    known += (known.empty() ? "" : ", ") + std::string(solver.name);
  }
  return config_error("search.solver: expected one of " + known + ", found \"" + std::string(name) + "\"");
}

}  // namespace ctk::search
