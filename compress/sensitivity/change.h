// What one layer under one scheme changes, found once and used for every sample: the weight's error and the rounding of
// activations. As quantize() would make it by rounding to nearest.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compress/sensitivity/metrics.h"

namespace ctk::pipeline {

// Errors of a weight, [channels, reduction], as bytes beside a scale a channel: off by at most 1/254 of the channel's
// largest error, which a score does not see, and all schemes of a language model fit into memory.
struct WeightError {
  std::size_t channels = 0, reduction = 0;
  std::vector<std::int8_t> values;
  std::vector<float> scales;  // [channels], multiplies a value

  void set(std::size_t channel, const float* errors);  // [reduction]

  std::vector<float> row(std::size_t channel) const;
  std::vector<float> all() const;
};

// sum of error[channel, i] * x[i]
double dot_error(const WeightError& error, std::size_t channel, const float* x);

struct Change {
  WeightError weight;
  // Values stored as codes once this layer alone has the scheme, and how they are rounded then.
  std::vector<std::pair<graph::ValueId, ActivationQuant>> noted;
  // Embeddings that read the same codes: Gather nodes whose rows are this weight's.
  std::vector<graph::NodeId> embeddings;
  // Where there are no such values, and if not 0: the layer's input is rounded to 8 bits a row and so many neighbours
  // as it comes in.
  std::size_t input_group = 0;
};

// Errors: those of apply_schemes().
Result<Change> change_of(const Session& session, const Candidate& candidate);

// Squared errors of rounding, each times the square of its gradient.
double weighted_rounding(std::span<const float> x, std::span<const float> gradient, const ActivationQuant& quant);
double weighted_group_rounding(std::span<const float> x, std::span<const float> gradient, std::size_t row,
                               std::size_t group);

}  // namespace ctk::pipeline
