// What else could be had: the front of loss against a budget, and what a budget costs at the margin. From one Problem,
// without scoring or measuring anything again.
#pragma once

#include "search/problem.h"

namespace ctk::search {

struct FrontPoint {
  Assignment answer;
  bool is_supported = false;  // on the convex hull: a best answer at some price of the budget
  double price = 0;           // loss saved for each unit more, on the way to the next point; 0 at the last
};

// At most `points` (>= 2) answers by growing cost in `budget` and falling loss, none beaten by another: the cheapest,
// the best, corners of the convex hull between them, then least losses at limits in the widest gaps. The budget's own
// limit is ignored, the other budgets' hold. At most 4 * points programmes are solved. Errors: input (check_problem(),
// no such budget, fewer than 2 points), budget_infeasible (the other budgets).
Result<std::vector<FrontPoint>> front(const Problem& problem, std::size_t budget, std::size_t points);

// The same over two budgets: fronts of `first` at `points` limits of `second`, evenly spaced. By growing cost in
// `first`, then in `second`; no point is beaten in loss and both costs. `price` is left 0.
Result<std::vector<FrontPoint>> front(const Problem& problem, std::size_t first, std::size_t second,
                                      std::size_t points);

}  // namespace ctk::search
