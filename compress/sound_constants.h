// Constants that make a network useless whatever it is fed, found before work so that no sample is blamed for them.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace ctk::pipeline {

// Refused: NaN in a float constant that a known operator reads; infinities in weights, biases, statistics and factors
// (bounds of Clip, masks and fills may be infinite); scales of QuantizeLinear and DequantizeLinear that are not finite
// and above 0; variances of BatchNormalization whose sum with epsilon is not above 0.
// `notes` receives a line for each variance that is negative but small enough for epsilon to mend.
// Errors: input: tensor name, number of bad values, first index.
Status require_sound_constants(const graph::Graph& graph, std::vector<std::string>* notes = nullptr);

}  // namespace ctk::pipeline
