// A model run for real by the processor and a simulated NPU.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "compress/model.h"
#include "compress/target.h"
#include "runtime/measure.h"
#include "runtime/npu_executor.h"

namespace ctk::pipeline {

struct TwoUnits {
  runtime::NpuReport report;
  std::vector<runtime::StepTime> times;  // [steps of the plan], measured; those of the NPU are of no use
};

// Runs the model with `nodes` (all, if none are given) on the NPU of `card` and the rest here, and on the processor
// alone; then measures the steps that stay here.
// Errors: config (the card says nothing of its inside, or is too small), internal (outputs that differ by a bit),
// input.
Result<TwoUnits> run_on_two_units(const LoadedModel& model, const TargetCard& card,
                                  std::optional<std::set<graph::NodeId>> nodes, double seconds);

// Errors: config (a card without the figures of an array; says which to add).
Status require_machine(const TargetCard& card);

}  // namespace ctk::pipeline
