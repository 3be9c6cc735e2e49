#include "search/solvers/solvers.h"

#include <array>

namespace ctk::search {
namespace {

constexpr std::array<Solver, 6> kSolvers{{
    {"ilp", "integer programme, solved by COIN-OR CBC and certified in whole numbers", true, false, solve_ilp},
    {"dp", "dynamic programme, exact for one budget", true, true, solve_dp},
    {"lagrangian", "prices for the budgets, repaired and exchanged; bound and gap", false, false, solve_lagrangian},
    {"greedy", "best loss for each unit of cost first, then precision changes removed", false, false, solve_greedy},
    {"evolutionary", "whole assignments bred and selected, for losses that do not add up", false, false,
     solve_evolution},
    {"brute_force", "every combination, for small problems and tests", true, false, solve_brute_force},
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
