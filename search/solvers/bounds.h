// Lagrangian bounds: plain arithmetic on the grid that needs no trust in whoever proposed the multipliers.
#pragma once

#include "search/grid.h"

namespace ctk::search {

// For multipliers m >= 0 every assignment within the limits satisfies
//   loss >= bound + sum of reduced[i][position] + sum of reduced_edges[e][position of a, position of b],
// where no term is negative.
struct Lagrangian {
  double bound = 0;
  double margin = 0;                               // more than the rounding in any of these sums
  std::vector<std::vector<double>> reduced;        // [items][positions]
  std::vector<std::vector<double>> reduced_edges;  // [edges][positions of a * positions of b]
  // [items][positions]: an assignment that has this position loses at least bound + least_with.
  std::vector<std::vector<double>> least_with;
};

// Without edges the bound is the least price of each item. Edges pass their least prices to and fro between their items
// (sequential tree-reweighted messages), which is exact where edges form chains or trees.
Lagrangian lagrangian(const Grid& grid, const std::vector<double>& multipliers);

// Positions of small price, item after item: the cheapest of all where edges form chains or trees or there are none.
std::vector<std::size_t> cheapest_by(const Grid& grid, const Lagrangian& bounds);

}  // namespace ctk::search
