// Factors per input feature that make a layer easier to quantize: weights are multiplied by them, inputs divided.
//
// The float result stays what it was when whatever makes the inputs is divided too: that is the caller's part. A
// feature whose inputs or weights are all zero keeps the factor 1; every factor is finite and above 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compress/quantize/grid_fit.h"
#include "core/result.h"

namespace ctk::quantization {

// SmoothQuant: moves the range of inputs into weights, s = max|x|^strength / max|w|^(1 - strength).
// input_magnitudes, weight_magnitudes: [columns], largest magnitude of each feature over samples, and of each column
// over all layers that read it. strength: 0 .. 1. Errors: input, when lengths differ or a magnitude is negative or not
// finite.
Result<std::vector<float>> smoothquant_factors(std::span<const float> input_magnitudes,
                                               std::span<const float> weight_magnitudes, double strength);

struct AwqOptions {
  GridForm form;
  GridFit fit = GridFit::squared_error;
  int steps = 20;           // exponents 0, 1 / steps, .. 1 are tried
  bool is_weighted = true;  // scales are fitted to errors weighted by the diagonal of H
  std::span<const std::uint32_t>
      class_of;  // [columns], below columns: columns of one class share a factor; empty: none
};

struct AwqOutcome {
  std::vector<float> factors;            // [columns]
  double exponent = 0;                   // of the inputs' magnitudes; 0 with is_divided false: no scaling
  bool is_divided = false;               // by the weights' magnitudes to 1 - exponent
  double error = 0, error_unscaled = 0;  // sum of |W x - Q x|^2 over the layers and samples; error <= error_unscaled
};

// AWQ: the factors under which rounding the layers that share one input loses least.
// layers: each [its rows, columns]. hessian: [columns, columns], sum x x^T.
// Errors: input, when sizes do not fit or something is not finite.
Result<AwqOutcome> search_awq_factors(std::span<const std::span<const float>> layers, std::size_t columns,
                                      std::span<const float> hessian, const AwqOptions& options);

}  // namespace ctk::quantization
