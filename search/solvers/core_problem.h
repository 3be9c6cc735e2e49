// Inside the ILP solver: Lagrangian bounds, the core they leave, and an exact walk through it.
#pragma once

#include "search/grid.h"
#include "search/solvers/cbc_loader.h"

namespace ctk::search {

// For multipliers m >= 0 every assignment within the limits satisfies
//   loss >= bound + sum of reduced[i][position],  reduced[i][p] >= 0,
// which is plain arithmetic on the grid and needs no trust in the LP solver that proposed m.
struct Lagrangian {
  double bound = 0;
  double margin = 0;                         // more than the rounding in any of these sums
  std::vector<std::vector<double>> reduced;  // [items][positions]
};
Lagrangian lagrangian(const Grid& grid, const std::vector<double>& multipliers);

// Positions per item that are worth a look: reduced cost at most `slack`.
using Core = std::vector<std::vector<std::size_t>>;
Core core_of(const Lagrangian& bounds, double slack);
bool is_whole(const Core& core, const Grid& grid);

// Walks the core in lexicographic order, pruning by bound, limits and the best so far; `best` must be within the limits
// and comes back as the best assignment of the core by the tie rule. False when `max_steps` ran out: then `best` is no
// worse than before.
bool walk_core(const Grid& grid, const Lagrangian& bounds, const Core& core, std::size_t max_steps,
               std::vector<std::size_t>& best);

// Moves `best` to an earlier equal assignment by changing one item or two at a time.
void exchange_ties(const Grid& grid, std::vector<std::size_t>& best);

// A programme of CBC over the columns of a core. Rows: one per open item (choose one), one per limit, then extra ones.
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

// Multipliers [budgets] from the linear relaxation over all columns. infeasible: no fractional assignment exists
// either.
struct Relaxation {
  CtkCbcStatus status = ctk_cbc_failed;
  std::vector<double> multipliers;
};
Relaxation relax(const Cbc& cbc, const Grid& grid);

}  // namespace ctk::search
