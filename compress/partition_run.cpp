// A placement run for real: the processor's part here, the npu's simulated, values moved as the card says.
#include <map>

#include "compress/partition.h"
#include "compress/two_units.h"

namespace ctk::pipeline {

Result<search::partition::Profile> run_placement(const LoadedModel& model, const TargetCard& card,
                                                 const search::partition::Task& task,
                                                 const search::partition::Plan& plan, double seconds,
                                                 PlacementRun& into) {
  const graph::Graph& graph = model.graph;
  std::map<std::string, std::size_t> node_at, value_at;
  for (std::size_t i = 0; i < task.nodes.size(); ++i) node_at[task.nodes[i].name] = i;
  for (std::size_t v = 0; v < task.values.size(); ++v) value_at[task.values[v].name] = v;
  // The task's node a step belongs to: that of the node which absorbs the step's own.
  const auto place_of = [&](graph::NodeId id) {
    while (id.is_valid() && graph.node(id).absorbed_by.is_valid() && !node_at.contains(graph.address(id)))
      id = graph.node(id).absorbed_by;
    const auto found = id.is_valid() ? node_at.find(graph.address(id)) : node_at.end();
    return found == node_at.end() ? task.nodes.size() : found->second;
  };
  std::set<graph::NodeId> on_npu;
  for (graph::NodeId id : graph.order()) {
    const std::size_t at = place_of(id);
    if (at < task.nodes.size() && plan.unit_of[at] == 1) on_npu.insert(id);
  }
  CTK_TRY(const TwoUnits run, run_on_two_units(model, card, on_npu, seconds));

  search::partition::Profile profile;
  profile.node_us.assign(task.nodes.size(), 0);
  profile.value_us.assign(task.values.size(), std::vector<double>(task.units.size(), 0));
  search::partition::Cost& counted = into.counted;
  const auto add = [&](graph::NodeId node, double us) {
    const std::size_t at = place_of(node);
    if (at < task.nodes.size()) profile.node_us[at] += us;
    (at < task.nodes.size() ? counted.compute_us : counted.convert_us) += us;
  };
  for (const runtime::NpuLayer& layer : run.report.layers)
    add(layer.node, kernels::npu::microseconds(*card.machine, layer.counts.cycles));
  for (const runtime::NpuFallback& step : run.report.fallbacks) add(step.node, run.times[step.step].median_us);
  for (const runtime::NpuTransfer& transfer : run.report.transfers) {
    const double us = card.transfer_us(static_cast<double>(transfer.bytes));
    counted.transfer_us += us;
    const auto value = value_at.find(graph.value(transfer.value).name);
    if (value != value_at.end()) profile.value_us[value->second][transfer.to_npu ? 1 : 0] += us;
  }
  counted.launch_us = static_cast<double>(run.report.launches) * card.launch_us;
  counted.total_us = counted.compute_us + counted.transfer_us + counted.convert_us + counted.launch_us;
  counted.makespan_us = counted.total_us;  // one unit at a time
  into.same_outputs = true;                // run_on_two_units() has compared them
  into.on_npu = run.report.layers.size();
  profile.total_us = counted.total_us;
  return profile;
}

}  // namespace ctk::pipeline
