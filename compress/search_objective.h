// budget.minimize: one budget as small as budget.metric_drop allows, by measuring networks along its front.
#pragma once

#include "compress/floor.h"
#include "compress/search_plan.h"

namespace ctk::pipeline::search_table {

struct Objective {
  double limit = 0;  // of the budget made small: the least found whose network stays within the floor
  std::vector<exporter::TrialRow> trials;  // by growing limit
  bool is_within = false;                  // false: not even the most precise answer is, `limit` is its cost
};

// At most this many networks are coded and run over the select split.
inline constexpr std::size_t kMostTrials = 12;

// Halves the front of loss against `budget` (a place in kBudgets) until the cheapest answer within the floor is found,
// then the gap below it. Codes are rounded to nearest, whatever the method of the pipeline. Other limits hold.
// Errors: budget_infeasible (the other limits), those of coding and running.
Result<Objective> smallest_within(const Session& session, Floor& floor, const Table& table, const Limits& limit,
                                  const Limits& extra, std::size_t budget);

// Holds the best answer within the limits against the floor before anything is coded in earnest; a method that fits
// codes to inputs does better than the rounding it is judged by, and is left to prove it.
// Errors: as floor_error(), where the network is below the floor by more than two standard errors.
Status require_floor(const Session& session, Floor& floor, const Table& table, const Limits& limit, const Limits& extra,
                     const search::Assignment& best);
// budget_infeasible: how far the best answer and the most precise one are from the floor, which layers lose most, and
// at which limit of each other budget the floor can be kept. Leaves search/infeasible.json.
Error floor_error(const Session& session, Floor& floor, const Table& table, const Limits& limit, const Limits& extra,
                  const search::Assignment& best);

}  // namespace ctk::pipeline::search_table
