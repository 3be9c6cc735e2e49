// Budgets: what can be reached before work, and how the result stands against them.
#pragma once

#include "compress/session.h"

namespace ctk::pipeline {

// The schemes that the stages allow a layer to take.
std::vector<QuantScheme> allowed_schemes(const PipelineConfig& config);
// Smallest file any allowed assignment can reach, by layer; schemes limited to what the stages allow, layers that
// `targets` and `ignore` leave out stay float.
struct ReachableSize {
  std::size_t least = 0, most = 0, float_bytes = 0;
  std::vector<std::pair<std::string, std::size_t>> holders;  // layers by their least bytes, largest first
};
// Errors: config (a pattern that matches nothing).
Result<ReachableSize> reachable_size(const PipelineConfig& config, const LoadedModel& model);
// Errors: budget_infeasible with the smallest reachable size and the layers that hold it there.
Status require_reachable_size(const Session& session);
// Ranges that stand for any: neither size nor memory depends on what they are.
std::map<std::string, calibrate::Range> placeholder_ranges(const graph::Graph& graph);
// Errors: budget_infeasible with the smallest peak memory that can be; those of quantizing and planning.
Status require_reachable_peak(Session& session);
// The same for latency, measured now; nothing where scores of an earlier run are at hand.
Status require_reachable_latency(Session& session);
// A warning for each budget that the stages predict but do not measure.
void warn_of_unmeasured_budgets(Session& session);
// report.budget from limits, predictions and measurements.
void fill_budget_rows(Session& session);
// Errors: budget_infeasible: a limit that the measured result does not keep; files and report stay.
Status require_met_budgets(const Session& session);

}  // namespace ctk::pipeline
