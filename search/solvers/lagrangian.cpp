// Lagrangian: prices for the budgets, the assignments that are cheapest at those prices, repaired and exchanged.
// Minimises: sum of losses within the limits; the bound is exact arithmetic, the answer as good as its gap says.
// In:  a Problem. Out: an Assignment, proved where a walk through what the bound leaves open comes to its end.
// Cost: some 100 bounds, a few thousand moves; needs no CBC unless repairing finds nothing.
// Source: Fisher, "The Lagrangian relaxation method for solving integer programming problems", 1981. Differs:
// multipliers by column generation (search/solvers/dual.h) in place of subgradients, so that the bound is the best one.
#include "search/infeasible.h"
#include "search/solvers/core_problem.h"
#include "search/solvers/moves.h"
#include "search/solvers/solvers.h"

namespace ctk::search {
namespace {

constexpr std::size_t kExchangeSteps = 100'000;  // for each assignment that is repaired
constexpr std::size_t kWalkSteps = 500'000;

}  // namespace

Result<Assignment> solve_lagrangian(const Problem& problem) {
  CTK_CHECK(check_problem(problem));
  const Grid grid = make_grid(problem);
  const Dual dual = best_multipliers(grid);
  if (is_infeasible(grid, dual)) return explain_infeasible(problem, solve_ilp);
  auto best = best_repaired(grid, dual, kExchangeSteps);
  if (!best) {
    CTK_TRY(std::vector<std::size_t> start, any_feasible(problem));
    Moves moves(grid, std::move(start));
    moves.exchange(kExchangeSteps);
    best = moves.positions();
  }
  const double needed = static_cast<double>(total_of(grid, *best).loss) - dual.bounds.bound;
  const bool is_proved = walk_core(grid, dual.bounds, core_of(dual.bounds, needed), kWalkSteps, *best);
  if (is_proved) return optimal_assignment(problem, grid, *best);
  exchange_ties(grid, *best);
  return bounded_assignment(problem, grid, *best, dual.bounds.bound - dual.bounds.margin);
}

}  // namespace ctk::search
