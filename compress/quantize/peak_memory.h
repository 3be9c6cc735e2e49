// What coding a network by a method that looks at inputs holds in memory, from shapes alone: an estimate.
#pragma once

#include <string>
#include <vector>

#include "compress/quantize/apply.h"

namespace ctk::quantization {

struct PeakMemory {
  std::size_t bytes = 0;                          // of the process
  std::string layer;                              // where it is reached; empty: as the coded network is written
  std::size_t values = 0, moments = 0, work = 0;  // there: values between layers, moments of inputs, the method's own
};

// `samples`: the input shapes of each. `values_in_memory` as WalkOptions has it. Errors: those of shape inference.
Result<PeakMemory> predict_peak(const graph::Graph& graph, const SchemeMap& schemes,
                                const std::vector<std::vector<Shape>>& samples, std::size_t values_in_memory);

}  // namespace ctk::quantization
