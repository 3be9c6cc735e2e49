// Gradients of -log p(label) at the network's output, with labels drawn from its own softmax.
#pragma once

#include "core/random.h"
#include "core/tensor.h"

namespace ctk::pipeline {

struct LabelGradient {
  Tensor gradient;       // like the output: softmax - one-hot, a row
  std::size_t rows = 0;  // one label each
};

// output: [samples, classes], [samples, tokens, classes] or [samples, classes, pixels...], as metrics take it. One
// label a row, in order. Errors: input (another shape, a number that is not finite).
Result<LabelGradient> draw_label_gradient(const Tensor& output, Random& random);

}  // namespace ctk::pipeline
