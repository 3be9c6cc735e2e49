#include "compress/two_units.h"

#include <algorithm>

namespace ctk::pipeline {

Status require_machine(const TargetCard& card) {
  if (card.machine) return {};
  return config_error("\"" + card.name +
                      "\": array_rows: expected the figures of an npu's inside, found none. Add array_rows, "
                      "array_columns, scratchpad, clock_mhz, requantize_per_cycle and dma_start_cycles to its card");
}

Result<TwoUnits> run_on_two_units(const LoadedModel& model, const TargetCard& card,
                                  std::optional<std::set<graph::NodeId>> nodes, double seconds) {
  CTK_CHECK(require_machine(card));
  CTK_TRY(auto one, runtime::CpuExecutor::create(model.graph, batch_shapes(model, 1)));
  CTK_TRY(auto two,
          runtime::NpuExecutor::create(model.graph, batch_shapes(model, 1), {*card.machine, std::move(nodes)}));
  CTK_TRY(const std::vector<Tensor> inputs, noise_inputs(model.graph, batch_shapes(model, 1), "bench"));
  CTK_TRY(const auto expected, one->run(inputs));
  CTK_TRY(const auto outputs, two->run(inputs));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::ranges::equal(outputs[i].raw(), expected[i].raw())) continue;
    return internal_error("output \"" + model.graph.value(model.graph.outputs()[i]).name +
                          "\": expected the same bits from one unit and from two, found others");
  }
  // Few rounds: the simulation is slow, and the steps between are timed behind it, their caches as cold as they would
  // be.
  runtime::CpuExecutor* const turn[] = {&two->steps()};
  CTK_TRY(auto times, runtime::measure_steps(turn, {seconds, 3, 200, 1}));
  return TwoUnits{two->report(), std::move(times[0])};
}

}  // namespace ctk::pipeline
