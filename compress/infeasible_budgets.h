// Budgets that no assignment keeps, explained: what each can reach alone and given the others, which bind, who holds
// them there, and the nearest limits that can be met.
#pragma once

#include "compress/search_plan.h"

namespace ctk::pipeline::search_table {

struct Explanation {
  std::string text;  // lines; the first is a whole sentence with what was expected, what was found and what to do
  std::string json;  // of search/infeasible.json
};
// has_losses: choices have been scored, so that a way out has a price. `solve` must not be null.
// Errors: what `solve` returns besides budget_infeasible.
Result<Explanation> explain(const search::Problem& problem, bool has_losses,
                            Result<search::Assignment> (*solve)(const search::Problem&));

// The budget_infeasible error with that text below `headline` (empty: the explanation's own first line). Leaves
// search/infeasible.json in `output`, a run's folder; an empty one: nothing is written.
Error infeasible_error(const search::Problem& problem, bool has_losses,
                       Result<search::Assignment> (*solve)(const search::Problem&), const std::string& output,
                       const std::string& headline = {});

// search/infeasible.json of a run, and of an earlier one. Errors: input (it cannot be written).
Status leave_infeasible(const std::string& output, const std::string& json);
void forget_infeasible(const std::string& output);

}  // namespace ctk::pipeline::search_table
