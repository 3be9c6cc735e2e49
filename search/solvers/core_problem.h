// Inside the ILP solver: the core that bounds leave, an exact walk through it, and its programmes for CBC.
#pragma once

#include "search/grid.h"
#include "search/solvers/bounds.h"
#include "search/solvers/cbc_loader.h"

namespace ctk::search {

// Positions per item that are worth a look: least_with at most `slack`.
using Core = std::vector<std::vector<std::size_t>>;
Core core_of(const Lagrangian& bounds, double slack);
bool is_whole(const Core& core, const Grid& grid);

// Loss and tie rule where no limit counts; `positions` come from the bounds and a walk of `max_steps`.
struct Unlimited {
  std::vector<std::size_t> positions;
  std::int64_t loss = 0;
  std::int64_t bound = 0;  // no assignment has a smaller loss; equal to loss when that is proved
  bool is_walked = false;  // ties are settled as well
};
Unlimited best_without_limits(Grid grid, std::size_t max_steps);

// Walks the core in lexicographic order, pruning by bound, limits and the best so far; `best` must be within the limits
// and comes back as the best assignment of the core by the tie rule. False when `max_steps` ran out: then `best` is no
// worse than before.
bool walk_core(const Grid& grid, const Lagrangian& bounds, const Core& core, std::size_t max_steps,
               std::vector<std::size_t>& best);

// Moves `best` to an earlier equal assignment by changing one item or two at a time.
void exchange_ties(const Grid& grid, std::vector<std::size_t>& best);

// A programme of CBC over the columns of a core. Rows: one per open item (choose one), one per limit, then extra ones.
// An edge between two open items has a column a pair, whose sums over either item are that item's columns.
// What CBC returns is checked in whole numbers; assignments that break a limit by its tolerance are cut off and it
// solves again.
struct CoreAnswer {
  CtkCbcStatus status = ctk_cbc_failed;
  std::vector<std::size_t> positions;  // empty when none was found
  std::int64_t bound = 0;              // grid loss no assignment of the core undercuts (optimal or stopped)
};
// Least loss; with `loss_limit` >= 0 least cost of budget 0 among assignments of at most that loss.
Result<CoreAnswer> solve_core(const Cbc& cbc, const Grid& grid, const Core& core, int max_nodes,
                              std::int64_t loss_limit = -1);

// Multipliers [budgets] from the linear relaxation over all columns, edges left out. infeasible: no fractional
// assignment exists either.
struct Relaxation {
  CtkCbcStatus status = ctk_cbc_failed;
  std::vector<double> multipliers;
};
Relaxation relax(const Cbc& cbc, const Grid& grid);

}  // namespace ctk::search
