// Moves constant zero padding of the spatial dimensions into the Conv or AveragePool that alone reads it.
// Conv: its own pads grow (auto_pad NOTSET or VALID only). AveragePool: padding elements were real elements, so they
// must be counted: count_include_pad becomes 1, which is right only if the pool had no pads of its own that were not
// counted, rounds its output size down, and keeps every pad below its kernel.
#include <algorithm>
#include <string>

#include "graph/passes/rewrite.h"

namespace ctk::graph {
namespace {

using Integers = std::vector<std::int64_t>;

bool is_zero(const Tensor& tensor) {
  const auto value = to_f32(tensor);
  return value && value->size() == 1 && value->values<float>()[0] == 0.0f;
}

// Pads of the spatial dimensions in ONNX order (begins, then ends), for a tensor of `rank` dimensions.
std::optional<Integers> spatial_zero_pads(const Graph& graph, const Node& pad, std::size_t rank) {
  if (pad.attributes.get_string("mode", "constant") != "constant") return std::nullopt;
  if (!is_omitted(pad, 2)) {
    const Tensor* value = constant_of(graph, pad, 2);
    if (value == nullptr || !is_zero(*value)) return std::nullopt;
  }
  const auto pads = integers_of(graph, pad, 1);
  auto axes = integers_of(graph, pad, 3);
  if (!pads || (!axes && !is_omitted(pad, 3)) || rank < 3) return std::nullopt;
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < rank; ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  if (pads->size() != 2 * axes->size()) return std::nullopt;
  const std::size_t spatial = rank - 2;
  Integers result(2 * spatial, 0);
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const std::int64_t signed_rank = static_cast<std::int64_t>(rank);
    const std::int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + signed_rank : (*axes)[i];
    const std::int64_t begin = (*pads)[i], end = (*pads)[axes->size() + i];
    constexpr std::int64_t kFar = std::int64_t{1} << 40;  // keeps sums of pads far from overflow
    if (axis < 0 || axis >= signed_rank || std::min(begin, end) < 0 || std::max(begin, end) > kFar) return std::nullopt;
    if (axis < 2) {
      if (begin != 0 || end != 0) return std::nullopt;
      continue;
    }
    result[static_cast<std::size_t>(axis) - 2] = begin;
    result[static_cast<std::size_t>(axis) - 2 + spatial] = end;
  }
  return result;
}

// The reader's own pads, zeros when it has none; nothing when they are computed from the input size.
std::optional<Integers> own_pads(const Node& reader, std::size_t count) {
  const std::string mode = reader.attributes.get_string("auto_pad", "NOTSET");
  if (mode == "VALID") return Integers(count, 0);
  if (mode != "NOTSET") return std::nullopt;
  Integers pads = reader.attributes.get_ints("pads", Integers(count, 0));
  const bool is_sane =
      std::all_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad >= 0 && pad < std::int64_t{1} << 40; });
  if (pads.size() != count || !is_sane) return std::nullopt;
  return pads;
}

bool fold_into_conv(Graph& graph, const Node& pad, NodeId reader) {
  Node& conv = graph.node(reader);
  const Tensor* weight = constant_of(graph, conv, 1);
  if (weight == nullptr) return false;
  const auto added = spatial_zero_pads(graph, pad, weight->shape().size());
  if (!added) return false;
  auto pads = own_pads(conv, added->size());
  if (!pads) return false;
  for (std::size_t i = 0; i < pads->size(); ++i) (*pads)[i] += (*added)[i];
  conv.attributes.erase("auto_pad");
  conv.attributes.set("pads", *pads);
  return true;
}

bool fold_into_pool(Graph& graph, const Node& pad, NodeId reader) {
  Node& pool = graph.node(reader);
  const Integers kernel = pool.attributes.get_ints("kernel_shape");
  const auto added = spatial_zero_pads(graph, pad, kernel.size() + 2);
  if (!added || pool.attributes.get_int("ceil_mode", 0) != 0) return false;
  auto pads = own_pads(pool, added->size());
  if (!pads) return false;
  const bool has_own = std::any_of(pads->begin(), pads->end(), [](std::int64_t own) { return own != 0; });
  if (has_own && pool.attributes.get_int("count_include_pad", 0) == 0) return false;
  for (std::size_t i = 0; i < pads->size(); ++i) {
    (*pads)[i] += (*added)[i];
    if ((*pads)[i] >= kernel[i % kernel.size()]) return false;
  }
  pool.attributes.erase("auto_pad");
  pool.attributes.set("pads", *pads);
  pool.attributes.set("count_include_pad", std::int64_t{1});
  return true;
}

}  // namespace

Result<int> fold_pad(Graph& graph) {
  int changes = 0;
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    const Node pad = graph.node(id);
    if (pad.op != Op::Pad || is_omitted(pad, 0) || pad.outputs.empty() || !pad.outputs[0].is_valid()) continue;
    const auto reader = only_reader(graph, pad.outputs[0]);
    if (!reader || graph.node(*reader).inputs[0] != pad.outputs[0] || !can_bypass(graph, id, pad.inputs[0])) continue;
    const Op op = graph.node(*reader).op;
    const bool is_folded = (op == Op::Conv && fold_into_conv(graph, pad, *reader)) ||
                           (op == Op::AveragePool && fold_into_pool(graph, pad, *reader));
    if (!is_folded) continue;
    bypass(graph, id, pad.inputs[0]);
    ++changes;
  }
  if (changes != 0) graph.remove_dead_values();
  return changes;
}

}  // namespace ctk::graph
