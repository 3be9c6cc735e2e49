// Gradient of a layer's weight over one forward run: sum of g x' over the rows (places of a convolution) of all samples
// in it, g the gradient at the layer's output, x its input.
#pragma once

#include <vector>

#include "graph/layer.h"

namespace ctk::calibrate {

// input, gradient: f32 in ONNX layout, of the layer's input and output.
// Returns [channels, reduction], rows of output channels whichever way the layer stores its weight. Gemm factors must
// have been folded (alpha = 1) and A must not be transposed.
// Cost: one product of the size of the layer's own. The same bits at any number of threads.
// Errors: input (a layer whose operator this does not know: ConvTranspose).
Result<std::vector<float>> weight_gradient(const graph::Graph& graph, const graph::Layer& layer, const Tensor& input,
                                           const Tensor& gradient);

// Rows that the layer multiplies with its weight, group after group: [groups][rows or places of all samples,
// reduction]. Errors: as weight_gradient().
Result<std::vector<float>> layer_rows(const graph::Graph& graph, const graph::Layer& layer, const Tensor& input);

}  // namespace ctk::calibrate
