// Bias correction: moves the mean error that rounding the weights causes into the bias.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/layer.h"

namespace ctk::quantization {

// bias[c] += sum_k (W - Wq)[c,k] * E[x_k], E over calibration samples per input channel.
// original: the float weight, same layout. Returns false (and changes nothing) for layers without means.
// Source: Nagel et al., Data-Free Quantization, 2019, section 4.2 (empirical means). Differs: borders of padded
// convolutions are treated as if they saw the mean too. A layer without bias gets one.
Result<bool> correct_bias(graph::Graph& graph, const graph::Layer& layer, const Tensor& original,
                          const std::map<std::string, std::vector<double>>& input_means);

}  // namespace ctk::quantization
