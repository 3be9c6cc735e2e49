// The solvers, one row each. All answer the same question by the same tie rule.
#pragma once

#include <span>
#include <string_view>

#include "search/problem.h"

namespace ctk::search {

// Heuristics (`is_exact` false) keep the budgets but may miss the least loss; their bound and gap say by how much at
// most. Every solver has limits of steps, not of time; one that comes to its end returns the best found with its gap.
struct Solver {
  std::string_view name;  // as in the pipeline file: search.solver
  std::string_view what;
  bool is_exact = true;     // on problems that end within the limits of steps
  bool one_budget = false;  // refuses more than one budget with a limit (error config)
  // One choice an item so that total loss is least and every budget holds. Ties go to the smaller cost in the first
  // budget, then to the earlier choice at the first item that differs: the answer is the same on every run.
  // Losses closer than 1e-12 of the largest possible sum count as equal; whole-number costs are exact (search/grid.h).
  // Errors: input (what check_problem() says; too large for this solver), budget_infeasible (what
  // search/infeasible.h says), config (the solver cannot be loaded; says what is missing).
  Result<Assignment> (*solve)(const Problem& problem);
};

std::span<const Solver> solvers();
// Errors: config (unknown name; lists those known).
Result<const Solver*> find_solver(std::string_view name);

Result<Assignment> solve_ilp(const Problem& problem);
Result<Assignment> solve_brute_force(const Problem& problem);
Result<Assignment> solve_dp(const Problem& problem);
Result<Assignment> solve_lagrangian(const Problem& problem);
Result<Assignment> solve_greedy(const Problem& problem);
Result<Assignment> solve_evolution(const Problem& problem);

}  // namespace ctk::search
