// What coding costs a group of layers: the squared error of their outputs on kept rows, inputs and weights rounded.
#pragma once

#include <span>
#include <vector>

#include "calibrate/observer.h"
#include "compress/transform/input_samples.h"
#include "core/quant_scheme.h"

namespace ctk::transform {

// A wanted layer's weight as rows of output channels, and its scheme.
struct CodedLayer {
  std::vector<float> weights;  // [channels, K]
  std::size_t channels = 0;
  QuantScheme scheme;
};

// Sum over `layers` of |X W^T - Q(X / s) Q(W s)^T|^2 over |X W^T|^2, with X the kept rows, [count, k]. factors:
// [features] s, each for k / features columns in a row. Activations of 8 bits are rounded to the range `observer` finds
// (minmax: of all samples), in groups to each group's own; weights by fitted scales, of 8 bits by the largest
// magnitude.
double coded_error(std::span<const CodedLayer> layers, const InputSamples& samples, std::size_t k,
                   std::span<const float> factors, const calibrate::ObserverOptions& observer);

}  // namespace ctk::transform
