// The nearest limits that can be met when the given ones cannot, and what they cost in loss.
#pragma once

#include "search/infeasible.h"

namespace ctk::search {

// The way out of limits that cannot be met.
struct Relief {
  std::string budget;
  double limit = 0;   // as given
  double needed = 0;  // the least that makes an answer possible
  double loss = 0;    // of the best answer with that limit
};
struct NearestFeasible {
  std::vector<Reach> reaches;
  std::vector<Relief> raise_one;  // budgets that help when raised alone
  double share = 0;               // the least share by which all limits must rise together: 0.07 = 7 %
  std::vector<double> limits;     // [budgets], raised by that share
  Assignment answer;              // the best at these limits
  std::vector<double> prices;     // [budgets] loss saved a unit by 1, 4 or 16 % more, the least that saves any
};
// Errors: as reach_of(). A problem that can be met comes back with share 0 and its answer. `solve` must not be null.
Result<NearestFeasible> nearest_feasible(const Problem& problem, Result<Assignment> (*solve)(const Problem&));

// "budget.size alone at 42 kB (asked 40 kB) allows a loss of 0.031; all limits 3 % higher allow ...": for people.
std::string describe(const NearestFeasible& nearest, const Problem& problem);

}  // namespace ctk::search
