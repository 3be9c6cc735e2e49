#include "runtime/npu_executor.h"

#include <map>

#include "runtime/steps/integer_layer.h"

namespace ctk::runtime {
namespace {

std::size_t root_of(const Plan& plan, int slot) {
  while (plan.slots[static_cast<std::size_t>(slot)].alias_of >= 0)
    slot = plan.slots[static_cast<std::size_t>(slot)].alias_of;
  return static_cast<std::size_t>(slot);
}

// Who has written a buffer so far, and where it has been brought.
struct Place {
  const NpuLayerStep* writer = nullptr;  // null: the processor
  bool is_brought = false;
};

}  // namespace

std::string no_commands_for(const std::string& label) {
  return "the NPU has no commands for " + label;
}

Result<std::unique_ptr<NpuExecutor>> NpuExecutor::create(const graph::Graph& graph, std::vector<Shape> input_shapes,
                                                         NpuPlacement placement, ExecutorOptions options) {
  options.npu = std::make_shared<const NpuPlacement>(std::move(placement));
  CTK_TRY(auto steps, CpuExecutor::create(graph, std::move(input_shapes), std::move(options)));
  return std::unique_ptr<NpuExecutor>(new NpuExecutor(graph, std::move(steps)));
}

NpuReport NpuExecutor::report() const {
  const Plan& plan = steps_->plan();
  NpuReport report;
  std::map<std::size_t, Place> places;  // by root slot
  const auto leaves = [&](int slot) {
    Place& place = places[root_of(plan, slot)];
    if (place.writer == nullptr || place.is_brought) return;
    place.is_brought = true;
    report.transfers.push_back(
        {place.writer->output, plan.slots[static_cast<std::size_t>(place.writer->writes[0])].bytes, false});
  };
  bool was_npu = false;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = *plan.steps[s];
    const auto* npu = dynamic_cast<const NpuLayerStep*>(&step);
    if (npu == nullptr) {
      std::string reason = step.why;
      if (reason.empty()) {
        reason = no_commands_for(step.label);
        if (step.node.is_valid()) reason += " (" + graph_.node(step.node).op_type + ")";
      }
      report.fallbacks.push_back({s, step.node, step.label, std::move(reason)});
      for (int slot : step.reads) leaves(slot);
      for (int slot : step.writes) places[root_of(plan, slot)] = {};
    } else {
      report.layers.push_back({step.node, npu->absorbed, step.row, npu->program.tile, npu->program.counts});
      report.total = report.total + npu->program.counts;
      report.launches += was_npu ? 0 : 1;
      for (std::size_t i = 0; i < step.reads.size(); ++i) {
        Place& place = places[root_of(plan, step.reads[i])];
        if (place.writer != nullptr || place.is_brought) continue;
        place.is_brought = true;
        report.transfers.push_back({npu->inputs[i], plan.slots[static_cast<std::size_t>(step.reads[i])].bytes, true});
      }
      places[root_of(plan, step.writes[0])] = {npu, false};
    }
    was_npu = npu != nullptr;
  }
  for (int slot : plan.output_slots) leaves(slot);
  return report;
}

}  // namespace ctk::runtime
