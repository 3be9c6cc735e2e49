// What a network with exits does on samples, and what its stages cost.
#pragma once

#include <string>
#include <vector>

#include "compress/early_exit/exits.h"
#include "compress/early_exit/thresholds.h"
#include "compress/session.h"

namespace ctk::exits {

// Errors: config: a metric that is no mean over single samples being right.
Status require_sample_metric(const std::string& metric);
// Which answer is right: the label's (top1), or the one the float network gives (agreement).
// Errors: config (another metric), those of running.
Result<std::vector<std::int64_t>> right_answers(const pipeline::Session& session, const data::Split& split,
                                                const std::string& metric);

// Runs the graph over the split. answers: [samples]. Errors: those of running.
Result<Outcomes> outcomes_of(const graph::Graph& graph, const Exits& exits, const data::Split& split,
                             const std::vector<std::int64_t>& answers);

struct StageCost {
  double macs = 0;        // of one sample, of this stage alone
  double latency_us = 0;  // least: on a busy machine medians would flatter short stages
};
// Of each stage. `with_times`: of one sample, stages run on what the stages before them gave, and the graph `whole` in
// turn with them, whose time comes last. Errors: those of running.
Result<std::vector<StageCost>> stage_costs(const pipeline::Session& session, const std::vector<graph::Subgraph>& stages,
                                           const std::vector<graph::InferredValue>& infos,
                                           const graph::Graph* whole = nullptr);

// Of a sample that leaves at each of the stages: sums of those before.
std::vector<double> macs_until(const std::vector<StageCost>& costs, std::size_t stages);

}  // namespace ctk::exits
