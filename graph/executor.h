// The interface every executor offers: float or integer, planned or differentiable.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace ctk::graph {

// Called after a value has been computed, in graph order. `data` is float32 (codes are dequantized first) and valid
// during the call only; its shape is in storage order: ONNX's, or [N, spatial..., C] when `channels_last`.
using ValueObserver = std::function<Status(ValueId, const TensorView& data, bool channels_last)>;

class Executor {
 public:
  virtual ~Executor() = default;
  // inputs: one per graph input, in order, dtype and shape as declared. Returns one tensor per graph output.
  // Errors: input (name, expected, found), internal. One call at a time per object.
  virtual Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) = 0;
  virtual Result<std::vector<Tensor>> run_observed(std::span<const Tensor> inputs, const ValueObserver& observer) = 0;
};

}  // namespace ctk::graph
