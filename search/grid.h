// A problem in whole numbers, so that sums are exact, budgets hold exactly and ties are ties.
//
// Losses: units of 2^k with k the least for which the largest possible sum stays below 2^40; a unit is about 1e-12 of
// the largest sum, and losses closer than that count as equal. Each item's smallest loss is subtracted.
// Costs of a budget: units of 1 when all its costs are whole numbers (bytes) and the sum stays below 2^40, else as for
// losses. Limits round to the unit; with units of 1 they round down, so that whole-number budgets are exact.
// Edges between the same two items become one; from each edge's losses its smallest is subtracted as well.
#pragma once

#include <cstdint>
#include <vector>

#include "search/problem.h"

namespace ctk::search {

struct GridChoice {
  std::size_t index = 0;            // in the problem's item
  std::int64_t loss = 0;            // >= 0
  std::vector<std::int64_t> costs;  // [budgets]
};
using GridItem = std::vector<GridChoice>;

// What pairs add, by the choices' indices in the problem: at(a, b) = a * width + b.
struct GridEdge {
  std::size_t a = 0, b = 0;                      // items, a < b
  std::size_t width = 0;                         // choices of item b
  std::vector<std::int64_t> loss;                // [choices of a * width], >= 0
  std::vector<std::vector<std::int64_t>> costs;  // [budgets][choices of a * width], >= 0
  std::size_t at(const GridChoice& of_a, const GridChoice& of_b) const { return of_a.index * width + of_b.index; }
};

struct Grid {
  std::vector<GridItem> items;                     // every item keeps at least one choice
  std::vector<GridEdge> edges;                     // by a, then b
  std::vector<std::vector<std::size_t>> edges_of;  // [items], edges that have the item as a or b; in order
  std::vector<std::int64_t> limits;  // [budgets], what choices may spend: fixed costs are taken off; may be < 0
  std::vector<double> cost_units;    // [budgets], cost = unit * grid cost
  double loss_unit = 1;
  double loss_offset = 0;  // sum of what was subtracted: loss = offset + unit * grid loss
};

// The problem must have passed check_problem().
Grid make_grid(const Problem& problem);

// Drops choices that another of the same item beats: no worse in loss and in every cost, whatever other items choose,
// and before it by the tie rule (smaller loss, then smaller first cost, then earlier). Best answers are kept, ties
// included.
void drop_dominated(Grid& grid);

// Sums over positions into grid.items[i] and their edges.
struct GridTotal {
  std::int64_t loss = 0;
  std::vector<std::int64_t> costs;
  bool is_within = false;  // all limits hold
};
GridTotal total_of(const Grid& grid, const std::vector<std::size_t>& positions);
// What items and edges add to one budget, each at its least and at its most.
struct CostRange {
  std::int64_t least = 0, most = 0;
};
CostRange cost_range(const Grid& grid, std::size_t budget);

// The tie rule between complete assignments: smaller loss, then smaller first budget's cost, then the earlier choice at
// the first item where they differ.
bool is_better(const Grid& grid, const std::vector<std::size_t>& a, const std::vector<std::size_t>& b);

// Positions -> the problem's choice indices, with sums, bound = loss and proved_optimal set.
Assignment optimal_assignment(const Problem& problem, const Grid& grid, const std::vector<std::size_t>& positions);

// The same for an assignment of which only `bound` is known: a grid loss that none within the limits undercuts.
// proved_optimal when no whole number lies between.
Assignment bounded_assignment(const Problem& problem, const Grid& grid, const std::vector<std::size_t>& positions,
                              double bound);

}  // namespace ctk::search
