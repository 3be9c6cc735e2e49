// Removes nodes that hand their first input through unchanged: Identity, Dropout (at inference), Cast to the type it
// has, Pad by nothing, Slice of everything, Transpose that moves nothing, Concat of one, and Reshape, Flatten, Squeeze
// or Expand to the shape it has. Shapes are trusted only where every run has them: all graph inputs declared in full.
#include <algorithm>

#include "graph/passes/rewrite.h"

namespace ctk::graph {
namespace {

using Inferred = std::optional<std::vector<InferredValue>>;

const ValueInfo* info_of(const Inferred& inferred, ValueId id) {
  if (!inferred || !id.is_valid() || !(*inferred)[id.index].known) return nullptr;
  return &(*inferred)[id.index].info;
}

bool is_inference_dropout(const Graph& graph, const Node& node) {
  if (is_omitted(node, 2)) return true;
  const Tensor* training = constant_of(graph, node, 2);
  if (training == nullptr || training->dtype() != DType::boolean || training->size() != 1) return false;
  return *static_cast<const std::uint8_t*>(training->data()) == 0;
}

bool is_same_type(const Node& node, const Inferred& inferred) {
  const ValueInfo* from = info_of(inferred, node.inputs[0]);
  const ValueInfo* to = info_of(inferred, node.outputs[0]);
  return from != nullptr && to != nullptr && from->dtype == to->dtype;
}

bool is_same_shape(const Node& node, const Inferred& inferred, bool is_static) {
  const ValueInfo* from = info_of(inferred, node.inputs[0]);
  const ValueInfo* to = info_of(inferred, node.outputs[0]);
  return is_static && from != nullptr && to != nullptr && from->shape == to->shape;
}

bool is_empty_pad(const Graph& graph, const Node& node) {
  const auto pads = integers_of(graph, node, 1);
  return pads && std::all_of(pads->begin(), pads->end(), [](std::int64_t pad) { return pad == 0; });
}

bool is_full_slice(const Graph& graph, const Node& node, bool is_same_size) {
  const auto starts = integers_of(graph, node, 1), ends = integers_of(graph, node, 2);
  const auto steps = integers_of(graph, node, 4);
  if (!starts || !ends || starts->size() != ends->size() || (!steps && !is_omitted(node, 4))) return false;
  if (steps && !std::all_of(steps->begin(), steps->end(), [](std::int64_t step) { return step == 1; })) return false;
  if (is_same_size) return true;
  // From the first element to further than any dimension reaches.
  constexpr std::int64_t kPastEnd = 0x7fffffff;
  return std::all_of(starts->begin(), starts->end(), [](std::int64_t start) { return start == 0; }) &&
         std::all_of(ends->begin(), ends->end(), [](std::int64_t end) { return end >= kPastEnd; });
}

bool is_identity_permutation(const Node& node) {
  const auto perm = node.attributes.get_ints("perm");
  if (perm.empty()) return false;
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

bool is_matrix_flatten(const Node& node, const Inferred& inferred) {
  const ValueInfo* from = info_of(inferred, node.inputs[0]);
  const std::int64_t axis = node.attributes.get_int("axis", 1);
  return from != nullptr && from->shape.size() == 2 && (axis == 1 || axis == -1);
}

bool hands_through(const Graph& graph, const Node& node, const Inferred& inferred, bool is_static) {
  switch (node.op) {
    case Op::Identity:
      return true;
    case Op::Dropout:
      return is_inference_dropout(graph, node);
    case Op::Cast:
      return is_same_type(node, inferred);
    case Op::Pad:
      return is_empty_pad(graph, node);
    case Op::Slice:
      return is_full_slice(graph, node, is_same_shape(node, inferred, is_static));
    case Op::Transpose:
      return is_identity_permutation(node);
    case Op::Concat:
      return node.inputs.size() == 1;
    case Op::Flatten:
      return is_matrix_flatten(node, inferred) || is_same_shape(node, inferred, is_static);
    case Op::Reshape:
    case Op::Squeeze:
    case Op::Expand:
      return is_same_shape(node, inferred, is_static);
    default:
      return false;
  }
}

}  // namespace

Result<int> eliminate_identity(Graph& graph) {
  Inferred inferred = try_infer(graph);
  if (!inferred) inferred = try_infer(graph, 1);  // types and ranks are right with any stand-in that passes
  const bool is_static = has_static_inputs(graph);
  int changes = 0;
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (is_omitted(node, 0) || node.outputs.empty() || !node.outputs[0].is_valid()) continue;
    if (!hands_through(graph, node, inferred, is_static) || !can_bypass(graph, id, node.inputs[0])) continue;
    bypass(graph, id, node.inputs[0]);
    ++changes;
  }
  if (changes != 0) graph.remove_dead_values();
  return changes;
}

}  // namespace ctk::graph
