// Rewrites between the forms an operator had over the opsets: normalize_* lift a node of `opset` to 24, lower_* bring
// it back. Internal to graph/onnx; the table that names them is op_map.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace ctk::graph::onnx {

struct FormContext {
  Graph& graph;
  int opset;                                     // the other end: the file's (normalize) or the wanted one (lower)
  const std::set<std::string>* taken = nullptr;  // names inside subgraphs, which new names must avoid too
  std::vector<Shape> sizes = {};                 // per value, from fixed_sizes(); -1 where a dimension is open
  std::set<ValueId> orphans = {};  // constants that lowering made attributes of: dropped when nobody reads them

  Error error(NodeId id, const std::string& text) const;
  // "... needs opset N, the model is written for opset M".
  Error needs(NodeId id, int since, const std::string& what) const;
  std::string new_name(const std::string& wish) const;
  ValueId add_ints(NodeId id, const std::string& what, const std::vector<std::int64_t>& values);
  // Contents of a constant input of integer type, if it is one.
  std::optional<std::vector<std::int64_t>> known_ints(NodeId id, std::size_t input) const;
  std::optional<float> known_scalar(NodeId id, std::size_t input) const;
  ValueId input(NodeId id, std::size_t index) const;  // invalid when absent
  void drop_inputs_from(NodeId id, std::size_t first);
  // Rank of the node's first input as far as declarations and producers tell.
  std::optional<std::int64_t> known_rank(NodeId id) const;
};

// Shapes that follow from the declared inputs whatever their open dimensions are bound to; undefined (no dimensions)
// where nothing follows. Empty when no window of the graph asks for them.
std::vector<Shape> fixed_sizes(const Graph& graph);

using Form = Status (*)(FormContext&, NodeId);

Status lower_attention(FormContext& c, NodeId id);
Status normalize_axes(FormContext& c, NodeId id);  // Squeeze, Unsqueeze, ReduceSum, ReduceMean
Status lower_axes(FormContext& c, NodeId id);
Status normalize_batch_normalization(FormContext& c, NodeId id);
Status normalize_clip(FormContext& c, NodeId id);
Status lower_clip(FormContext& c, NodeId id);
Status normalize_dropout(FormContext& c, NodeId id);
Status lower_dropout(FormContext& c, NodeId id);
Status lower_conv_transpose(FormContext& c, NodeId id);
Status lower_gemm(FormContext& c, NodeId id);
Status normalize_pad(FormContext& c, NodeId id);
Status lower_pad(FormContext& c, NodeId id);
Status lower_quantize(FormContext& c, NodeId id);  // QuantizeLinear, DequantizeLinear
Status normalize_resize(FormContext& c, NodeId id);
Status normalize_upsample(FormContext& c, NodeId id);
Status lower_resize(FormContext& c, NodeId id);
Status normalize_slice(FormContext& c, NodeId id);
Status lower_slice(FormContext& c, NodeId id);
Status normalize_softmax(FormContext& c, NodeId id);
Status lower_softmax(FormContext& c, NodeId id);
Status normalize_split(FormContext& c, NodeId id);
Status lower_split(FormContext& c, NodeId id);
Status lower_window(FormContext& c, NodeId id);  // AveragePool, Conv, MaxPool

}  // namespace ctk::graph::onnx
