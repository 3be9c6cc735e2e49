// Sizes of written files, before they are written.
#pragma once

#include "compress/config.h"
#include "compress/quantize/apply.h"
#include "graph/graph.h"

namespace ctk::pipeline {

// The format whose size a budget means: the bundle if it is exported, else the first model format, else the bundle.
std::string budget_format(const PipelineConfig& config);
// Exact bytes of the file `format` would be written as for this graph.
Result<std::size_t> file_bytes(const graph::Graph& graph, const std::string& format, const std::string& model);

// Weights of layers, each counted once, and the bits one takes in the mean: codes, scales and zero points as stored,
// float weights at 32.
std::size_t layer_weights(const graph::Graph& graph);
double average_bits(const graph::Graph& graph);

}  // namespace ctk::pipeline
