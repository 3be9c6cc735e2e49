// Brute force: every combination of choices, the reference the other solvers are tested against.
// In:  a problem of at most 2^22 combinations.
// Out: the best assignment by the tie rule of search/solvers/solvers.h.
// Cost: product of the choice counts, times items.
#include <optional>

#include "search/grid.h"
#include "search/infeasible.h"
#include "search/solvers/solvers.h"

namespace ctk::search {

Result<Assignment> solve_brute_force(const Problem& problem) {
  constexpr std::size_t kMostCombinations = std::size_t{1} << 22;
  CTK_CHECK(check_problem(problem));
  std::size_t combinations = 1;
  for (const Item& item : problem.items) {
    if (combinations > kMostCombinations / item.choices.size()) {
      return input_error("search.solver: brute_force tries at most " + std::to_string(kMostCombinations) +
                         " combinations, found more. Use solver ilp");
    }
    combinations *= item.choices.size();
  }
  const Grid grid = make_grid(problem);
  std::optional<std::vector<std::size_t>> best;
  std::vector<std::size_t> positions(grid.items.size(), 0);
  for (std::size_t n = 0; n < combinations; ++n) {
    if (total_of(grid, positions).is_within && (!best || is_better(grid, positions, *best))) best = positions;
    for (std::size_t i = positions.size(); i-- > 0;) {  // the last item turns fastest
      if (++positions[i] < grid.items[i].size()) break;
      positions[i] = 0;
    }
  }
  if (!best) return explain_infeasible(problem, solve_brute_force);
  return optimal_assignment(problem, grid, *best);
}

}  // namespace ctk::search
