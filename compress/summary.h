// Budgets: what can be reached before work, and how the result stands against them.
#pragma once

#include "compress/session.h"

namespace ctk::pipeline {

// Bytes of one layer's weights under a scheme, `count` of them: codes, scales and zero points.
std::size_t coded_bytes(const graph::Layer& layer, std::size_t count, const QuantScheme& scheme);
// The schemes that the stages allow a layer to take.
std::vector<QuantScheme> allowed_schemes(const PipelineConfig& config);
// The same of one layer, which an assignment may tell apart.
std::vector<QuantScheme> allowed_schemes(const PipelineConfig& config, const std::string& layer);
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
// Every budget of size, latency (measured now, `with_times` and where no scores of an earlier run are at hand), peak
// memory and average bits, alone and together. `output`: where search/infeasible.json is left; empty: nowhere.
// Errors: budget_infeasible with what can be reached, who holds it there and the nearest limits that can be met; those
// of quantizing, planning and running.
Status require_reachable(Session& session, bool with_times, const std::string& output);
// The same of a session, times taken by rank 0 for all.
Status require_budgets(Session& session);
// A warning for each budget that the stages predict but do not measure.
void warn_of_unmeasured_budgets(Session& session);
// report.budget from limits, predictions and measurements.
void fill_budget_rows(Session& session);
// Errors: budget_infeasible: a limit that the measured result does not keep; files and report stay.
Status require_met_budgets(const Session& session);

}  // namespace ctk::pipeline
