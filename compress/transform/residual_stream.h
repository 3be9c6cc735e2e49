// The values of a decoder that an orthogonal matrix can turn as one: what embeddings and blocks add to, and norms read.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/layer.h"

namespace ctk::transform {

struct ResidualStream {
  std::size_t features = 0;
  std::vector<graph::NodeId> embeddings;  // Gather of rows of a constant
  std::vector<graph::NodeId> norms;       // RMSNormalization that reads it; only layers read what it gives
  std::vector<graph::Layer> readers;      // of those norms
  std::vector<graph::Layer> writers;      // whose result is added to it
  std::vector<graph::NodeId> biases;      // Add of a constant for each feature
};
// Values and heads of attention: what `values` makes is read by attention alone, what that gives by `output` alone.
struct ValueHeads {
  graph::Layer values, output;
  std::size_t size = 0;  // of a head
};

// Errors: config: the node that keeps the stream from being turned, and why (LayerNormalization takes the mean away).
Result<ResidualStream> find_residual_stream(const graph::Graph& graph);
// Those whose heads lie side by side in one dimension; others are left out.
std::vector<ValueHeads> find_value_heads(const graph::Graph& graph);

}  // namespace ctk::transform
