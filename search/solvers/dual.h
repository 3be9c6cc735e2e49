// The multipliers that make the Lagrangian bound largest: what each budget costs at the margin.
#pragma once

#include "search/solvers/bounds.h"

namespace ctk::search {

struct Dual {
  std::vector<double> multipliers;             // [budgets], grid loss for each grid unit of cost
  Lagrangian bounds;                           // at these multipliers
  std::vector<std::vector<std::size_t>> seen;  // assignments met on the way, some within the limits, none twice
};

// Limits that no choice can reach or break get the multiplier 0. Deterministic; at most some hundred bounds.
Dual best_multipliers(const Grid& grid);

// The bound exceeds every loss there is: no assignment keeps the limits. (False proves nothing.)
bool is_infeasible(const Grid& grid, const Dual& dual);

}  // namespace ctk::search
