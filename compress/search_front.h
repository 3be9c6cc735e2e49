// What else could be had from one scoring: answers that no other one beats, with what a unit of each budget buys there.
#pragma once

#include <span>

#include "compress/search_plan.h"

namespace ctk::pipeline::search_table {

struct FrontPoint {
  exporter::FrontRow row;
  search::Assignment answer;
};

// The budgets to draw a front over where nobody names any: size, and latency where layers were timed.
std::vector<std::size_t> usual_axes(const Table& table);

// Over one budget of kBudgets (at most `points` answers) or two (at most so many at each of so many limits of the
// second), by growing cost. `taken` (may be null) joins them unless one of them beats it. Limits of the axes are
// ignored, those of other budgets hold. Price: the most that a unit more of the budget saves on the way to another
// point which takes at most a hundredth more of the other axis. Errors: input (axes), budget_infeasible (the other
// budgets).
Result<std::vector<FrontPoint>> front_of(const Table& table, const Limits& limit, const Limits& extra,
                                         std::span<const std::size_t> axes, std::size_t points,
                                         const search::Assignment* taken = nullptr);

// Costs of an answer, a figure a budget that was measured.
exporter::BudgetFigures figures_of(const Table& table, const search::Assignment& answer);

}  // namespace ctk::pipeline::search_table
