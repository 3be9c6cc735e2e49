#include "compress/early_exit/figures.h"

#include <algorithm>

#include "compress/evaluate.h"
#include "compress/network_stage.h"
#include "data/metric.h"
#include "runtime/measure.h"

namespace ctk::exits {
namespace {

using graph::Graph;
using graph::ValueId;

// Index of the largest number of each row of [batch, classes].
void add_answers(const Tensor& output, std::vector<std::int64_t>& answers) {
  const auto values = output.values<float>();
  const auto classes = static_cast<std::size_t>(output.shape().back());
  for (std::size_t at = 0; at + classes <= values.size(); at += classes)
    answers.push_back(static_cast<std::int64_t>(data::arg_max(values.subspan(at, classes))));
}

}  // namespace

Status require_sample_metric(const std::string& metric) {
  if (metric == "top1" || metric == "agreement") return {};
  return config_error("expected the metric top1 or agreement, which are of single samples, found \"" + metric +
                      "\". Give data.select one of them as `metric:`");
}

Result<std::vector<std::int64_t>> right_answers(const pipeline::Session& session, const data::Split& split,
                                                const std::string& metric) {
  std::vector<std::int64_t> answers;
  if (metric == "top1") {
    for (std::size_t index : split.indices) answers.push_back(split.source->label(index));
    return answers;
  }
  CTK_CHECK(require_sample_metric(metric));
  CTK_CHECK(
      pipeline::for_each_batch(session.float_graph(), split, {}, {},
                               [&](const std::vector<Tensor>& outputs, const data::Batch&, std::size_t) -> Status {
                                 add_answers(outputs[0], answers);
                                 return {};
                               }));
  return answers;
}

Result<Outcomes> outcomes_of(const Graph& graph, const Exits& exits, const data::Split& split,
                             const std::vector<std::int64_t>& answers) {
  Graph probe = graph.clone();
  const std::size_t first = probe.outputs().size(), count = exits.exits.size();
  for (const Exit& exit : exits.exits) {
    probe.add_output(*probe.find_value(exit.confidence));
    probe.add_output(*probe.find_value(exit.logits));
  }
  probe.add_output(*probe.find_value(exits.end));
  Outcomes outcomes;
  outcomes.confidence.resize(count);
  outcomes.is_right.resize(count + 1);
  CTK_CHECK(pipeline::for_each_batch(
      probe, split, {}, {}, [&](const std::vector<Tensor>& outputs, const data::Batch&, std::size_t at) -> Status {
        for (std::size_t way = 0; way <= count; ++way) {
          const bool is_end = way == count;
          if (!is_end) {
            const auto sure = outputs[first + 2 * way].values<float>();
            outcomes.confidence[way].insert(outcomes.confidence[way].end(), sure.begin(), sure.end());
          }
          std::vector<std::int64_t> said;
          add_answers(outputs[first + 2 * way + (is_end ? 0 : 1)], said);
          for (std::size_t i = 0; i < said.size(); ++i) outcomes.is_right[way].push_back(said[i] == answers[at + i]);
        }
        return {};
      }));
  return outcomes;
}

Result<std::vector<StageCost>> stage_costs(const pipeline::Session& session, const std::vector<graph::Subgraph>& stages,
                                           const std::vector<graph::InferredValue>& infos, const Graph* whole) {
  std::vector<StageCost> costs;
  for (const graph::Subgraph& stage : stages) {
    pipeline::LoadedModel part;
    part.graph = stage.graph.clone();
    for (ValueId input : stage.inputs) part.sample_shapes.push_back(infos[input.index].info.shape);
    costs.push_back({static_cast<double>(pipeline::total_macs(part)), 0});
  }
  if (whole == nullptr) return costs;
  CTK_TRY(std::vector<Tensor> sample, pipeline::first_sample(session, session.model.graph));
  if (sample.empty()) {
    CTK_TRY(sample,
            pipeline::noise_inputs(session.model.graph, pipeline::batch_shapes(session.model, 1), "early_exit"));
  }
  std::map<std::string, Tensor> known;
  for (std::size_t i = 0; i < sample.size(); ++i) known[whole->value(whole->inputs()[i]).name] = sample[i];
  std::vector<const Graph*> graphs;
  for (const graph::Subgraph& stage : stages) graphs.push_back(&stage.graph);
  graphs.push_back(whole);
  std::vector<std::unique_ptr<runtime::CpuExecutor>> executors;
  std::vector<runtime::CpuExecutor*> turns;
  for (const Graph* graph : graphs) {
    std::vector<Tensor> inputs;
    std::vector<Shape> shapes;
    for (ValueId input : graph->inputs()) {
      inputs.push_back(known.at(graph->value(input).name));
      shapes.push_back(inputs.back().shape());
    }
    CTK_TRY(auto executor, runtime::CpuExecutor::create(*graph, shapes));
    CTK_TRY(const std::vector<Tensor> outputs, executor->run(inputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) known[graph->value(graph->outputs()[i]).name] = outputs[i].clone();
    turns.push_back(executor.get());
    executors.push_back(std::move(executor));
  }
  CTK_TRY(const auto times, runtime::measure_interleaved(turns, {0.2, 10, 500, 3}));
  costs.push_back({0, 0});
  for (std::size_t i = 0; i < times.size(); ++i) costs[i].latency_us = times[i].least_us;
  return costs;
}

std::vector<double> macs_until(const std::vector<StageCost>& costs, std::size_t stages) {
  std::vector<double> until;
  for (std::size_t i = 0; i < stages; ++i) until.push_back((i == 0 ? 0 : until.back()) + costs[i].macs);
  return until;
}

}  // namespace ctk::exits
