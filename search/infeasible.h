// Why no assignment meets the budgets: what each budget could reach, and who holds it there. Needs costs only, so it
// can be asked before anything is scored.
#pragma once

#include <optional>

#include "search/problem.h"

namespace ctk::search {

struct Holder {
  std::string item;
  std::string choice;  // the item's cheapest in this budget
  double cost = 0;
};

struct Reach {
  std::string budget;
  double limit = 0;
  double least_alone = 0;  // smallest total if no other budget counted, fixed cost included
  // Smallest total while all other limits hold; none when those conflict, or when this budget has no limit.
  std::optional<double> least_with_others;
  std::vector<Holder> holders;  // all items at their cheapest choice, most costly first, ties in item order
  // least_alone <= limit, by the grid's arithmetic; also where edges are so many that the least is not proved.
  bool is_reachable = false;
};

// One entry a budget. `solve` (any solver; may be null) finds least_with_others where there are several budgets.
// Errors: input (what check_problem() says), what `solve` returns besides budget_infeasible.
Result<std::vector<Reach>> reach_of(const Problem& problem, Result<Assignment> (*solve)(const Problem&));

// The budget_infeasible error of a problem without answer:
//   budget.size: expected at most 1 kB, smallest reachable is 137.2 kB (all layers at w4a8_c); held by layer3.2.conv2
//   18.5 kB, ...; raise the budget or allow smaller schemes
// or, where budgets only fail together, what one can reach while the others hold.
Error explain_infeasible(const Problem& problem, Result<Assignment> (*solve)(const Problem&));

// OK when each budget can be met alone and, by `solve` if given, all together; otherwise explain_infeasible().
// Losses are ignored and may be anything finite: call it before scoring.
Status check_feasible(const Problem& problem, Result<Assignment> (*solve)(const Problem&));

}  // namespace ctk::search
