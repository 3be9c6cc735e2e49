// Layers: nodes whose weight can be quantized, and where their channels lie. The one place that derives it.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace ctk::graph {

// A Conv, ConvTranspose, Gemm or MatMul whose weight is a constant (an initializer, or a constant after folding).
struct Layer {
  NodeId node;
  ValueId input;  // the activation
  ValueId weight;
  ValueId bias;                // invalid when absent
  int channel_axis = 0;        // of the weight: the dimension that runs over output channels (within a group)
  int group_count = 1;         // > 1 only for ConvTranspose with groups: channels = group_count * shape[channel_axis]
  std::int64_t channels = 0;   // output channels = number of per-channel scales
  std::int64_t reduction = 0;  // K: products summed per output element
  bool is_depthwise = false;   // Conv with group == input channels
};

// Errors: none; nullopt with the reason in `why` (if given) when the node is no quantizable layer: not a layer
// operator, weight not constant or not float32, weight rank unfit. The weight may have other readers: whoever codes it
// gives the layers a copy, see other_readers().
std::optional<Layer> layer_of(const Graph& graph, NodeId node, std::string* why = nullptr);
// All layers in graph order.
std::vector<Layer> layers_of(const Graph& graph);
// Whether one coded tensor serves both: the same weight, with scales along the same dimension.
bool can_share_codes(const Layer& a, const Layer& b);
// Readers of `weight` that are no layers with this weight, and so need the float original.
std::vector<NodeId> other_readers(const Graph& graph, ValueId weight);

}  // namespace ctk::graph
