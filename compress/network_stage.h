// What the stages that change the network share (distill, prune, finetune the float one, qat the coded one): the cached
// artifact, the metric before and after on the select split, the gate, and the network taking the old one's place.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "compress/session.h"

namespace ctk::pipeline {

enum class NetworkKind { real, coded };  // session.model.graph, session.quantized

struct ChangedNetwork {
  graph::Graph graph;  // of the same kind, inputs and outputs
  std::string notes;   // JSON of the stage's own: what it did; kept in its artifact
};
using ChangeNetwork = std::function<Result<ChangedNetwork>()>;

// Runs `change` unless its artifact is there, states the metric before and after (session.stage_row), and holds `gate`
// against them. Accepted: session.model.graph is the new network, session.original the one that was read. Refused:
// error gate_refused, or with `continues` a warning and the network as it was. `extra`: what the stage depends on
// beside its own keys (file contents, splits). `notes` receives those of the artifact, also when refused. Errors: those
// of `change` and of running; gate_refused; budget_infeasible (after the last such stage: budgets that the network as
// it is now cannot keep); internal (inputs or outputs differ).
Status run_network_stage(Session& session, std::string_view stage, const std::vector<std::string>& extra,
                         const GateConfig& gate, const ChangeNetwork& change, bool& cached, std::string& notes,
                         NetworkKind kind = NetworkKind::real);

// Inputs of a graph's smallest batch, read from the first split; none when the pipeline has no data.
Result<std::vector<Tensor>> first_sample(const Session& session, const graph::Graph& graph);
// Median time of one real sample in each network, us, run in turn; of zeros when the pipeline has no data.
Result<std::vector<double>> median_times_us(const Session& session, std::span<const graph::Graph* const> graphs);

}  // namespace ctk::pipeline
