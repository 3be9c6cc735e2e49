#include "compress/token_checks.h"

#include <algorithm>
#include <limits>

namespace ctk::pipeline {
namespace {

using graph::Graph;
using graph::Node;
using graph::Op;

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// Length of dimension `axis` of a constant input; kNoLimit for values of the run.
std::int64_t constant_rows(const Graph& graph, const Node& node, std::size_t input, std::size_t axis) {
  if (input >= node.inputs.size() || !node.inputs[input].is_valid()) return kNoLimit;
  const graph::Value& value = graph.value(node.inputs[input]);
  if (!value.constant && !value.quantized) return kNoLimit;
  const Shape& shape = value.constant ? value.constant->shape() : value.quantized->codes.shape();
  return axis < shape.size() ? shape[axis] : kNoLimit;
}

// The same numbers in another shape.
bool keeps_numbers(Op op) {
  return op == Op::Squeeze || op == Op::Unsqueeze || op == Op::Reshape || op == Op::Flatten || op == Op::Transpose ||
         op == Op::Identity || op == Op::Cast;
}

// Rows of the smallest table that the numbers of `ids` are looked up in.
std::int64_t embedding_rows(const Graph& graph, graph::ValueId ids) {
  std::int64_t rows = kNoLimit;
  for (const graph::NodeId id : graph.value(ids).consumers) {
    const Node& node = graph.node(id);
    if (node.op == Op::Gather && node.inputs.size() > 1 && node.inputs[1] == ids)
      rows = std::min(rows, constant_rows(graph, node, 0, 0));
    if (keeps_numbers(node.op) && node.inputs[0] == ids) rows = std::min(rows, embedding_rows(graph, node.outputs[0]));
  }
  return rows;
}

// Positions that every rotation has an angle for. Inputs: x, cos_cache, sin_cache, position_ids; without these the
// tables are of the sequence itself, and shapes tell.
std::int64_t rotary_positions(const Graph& graph) {
  std::int64_t positions = kNoLimit;
  for (const graph::NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op != Op::RotaryEmbedding || node.inputs.size() < 4 || !node.inputs[3].is_valid()) continue;
    positions = std::min(positions, constant_rows(graph, node, 1, 0));
  }
  return positions;
}

std::string key_of(const data::Split& split) {
  return "data." + (split.role == "test" ? "evaluate" : split.role);
}

Status check_sample(const data::Split& split, std::size_t index, const Tensor& ids, std::int64_t rows,
                    std::int64_t positions) {
  const auto where = [&] { return key_of(split) + ": " + split.source->where(split.indices[index]); };
  const std::int64_t length = ids.shape().empty() ? 0 : ids.shape().back();
  if (length > positions) {
    return input_error(where() + ": expected at most " + std::to_string(positions) +
                       " tokens, the positions of the model, found " + std::to_string(length) + ". Set " +
                       key_of(split) + ".context to " + std::to_string(positions) + " or less");
  }
  for (const std::int64_t id : ids.values<std::int64_t>()) {
    if (id >= -rows && id < rows) continue;
    return input_error(where() + ": expected token ids below " + std::to_string(rows) +
                       ", the rows of the model's embedding, found " + std::to_string(id) +
                       ". Take the tokenizer that belongs to the model");
  }
  return {};
}

}  // namespace

Status check_tokens(const Session& session) {
  const Graph& graph = session.model.graph;
  const std::int64_t positions = rotary_positions(graph);
  for (std::size_t input = 0; input < graph.inputs().size(); ++input) {
    const graph::ValueId id = graph.inputs()[input];
    const std::int64_t rows = embedding_rows(graph, id);
    if (graph.value(id).dtype != DType::i64 || rows == kNoLimit) continue;
    for (const data::Split* split : session.splits.all()) {
      if (!split->source->spec().text) continue;
      for (std::size_t i = 0; i < split->count(); ++i) {
        CTK_TRY(const data::Batch sample, split->read(i, i + 1));
        CTK_CHECK(check_sample(*split, i, sample.inputs[input], rows, positions));
      }
    }
  }
  return {};
}

}  // namespace ctk::pipeline
