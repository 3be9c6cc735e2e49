#include "runtime/generate_graph.h"

#include <limits>

#include "core/printable.h"

namespace ctk::runtime {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

Error not_a_decoder(const std::string& found) {
  return input_error(
      "expected a language model: input_ids i64 [1, sequence] to logits f32 [1, sequence, vocabulary], " +
      std::string("with causal attention and rotary positions; found ") + found +
      ". Give a checkpoint folder of Llama's family, or a bundle made from one");
}

Status check_ends(const Graph& graph) {
  if (graph.inputs().size() != 1) return not_a_decoder(std::to_string(graph.inputs().size()) + " inputs");
  const graph::Value& input = graph.value(graph.inputs()[0]);
  if (input.dtype != DType::i64 || !input.shape || input.shape->size() != 2) {
    return not_a_decoder("input \"" + printable(input.name) + "\" " + std::string(name_of(input.dtype)) + " " +
                         (input.shape ? graph::to_string(*input.shape) : "of no declared shape"));
  }
  if (graph.outputs().size() != 1) return not_a_decoder(std::to_string(graph.outputs().size()) + " outputs");
  const graph::Value& output = graph.value(graph.outputs()[0]);
  if (output.dtype != DType::f32) {
    return not_a_decoder("output \"" + printable(output.name) + "\" " + std::string(name_of(output.dtype)));
  }
  return {};
}

// Every RotaryEmbedding reads the same positions; they come from outside from now on. Answers the rows of the tables.
Result<std::size_t> open_positions(Graph& graph) {
  ValueId positions;
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();
  std::size_t attentions = 0;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op == Op::Attention) ++attentions;
    if (node.op != Op::RotaryEmbedding) continue;
    const ValueId given = node.inputs.size() > 3 ? node.inputs[3] : ValueId{};
    if (!given.is_valid() || (positions.is_valid() && given != positions)) {
      return not_a_decoder("positions of its own in " + printable(graph.address(id)));
    }
    positions = given;
    const auto& table = graph.value(node.inputs[1]).constant;
    if (!table || table->shape().size() != 2) {
      return not_a_decoder("no constant rotary tables in " + printable(graph.address(id)));
    }
    rows = std::min(rows, table->shape()[0]);
  }
  if (attentions == 0) return not_a_decoder("no Attention");
  if (!positions.is_valid()) return not_a_decoder("no RotaryEmbedding");
  const ValueId input =
      graph.add_value(graph.unique_name("positions"), DType::i64, graph::DeclaredShape{{1, ""}, {-1, "sequence"}});
  graph.add_input(input);
  graph.replace_uses(positions, input);
  return static_cast<std::size_t>(rows);
}

// The head sees the last token alone. Answers the vocabulary.
Result<std::size_t> cut_head(Graph& graph) {
  NodeId head = graph.value(graph.outputs()[0]).producer;
  while (head.is_valid() && (graph.node(head).op == Op::Unsqueeze || graph.node(head).op == Op::Identity)) {
    head = graph.value(graph.node(head).inputs[0]).producer;
  }
  if (!head.is_valid() || graph.node(head).op != Op::Gemm) return not_a_decoder("an output that no Gemm computes");
  const Node& gemm = graph.node(head);
  const graph::Value& weight = graph.value(gemm.inputs[1]);
  const Shape shape = weight.quantized != nullptr ? weight.quantized->codes.shape()
                      : weight.constant           ? weight.constant->shape()
                                                  : Shape{};
  if (shape.size() != 2) return not_a_decoder("a head without constant weight");
  const bool is_transposed = gemm.attributes.get_int("transB", 0) != 0;
  const auto ints = [&](const char* name, std::int64_t value) {
    return graph.add_constant(graph.unique_name(name), Tensor::of<std::int64_t>({1}, std::span(&value, 1)));
  };
  Node slice;
  slice.name = graph.unique_name("last_token");
  slice.op_type = "Slice";
  slice.inputs = {gemm.inputs[0], ints("last_token.start", -1),
                  ints("last_token.end", std::numeric_limits<std::int64_t>::max()), ints("last_token.axis", 0)};
  const ValueId last = graph.add_value(graph.unique_name("last_token.output"), DType::f32);
  slice.outputs = {last};
  graph.add_node(std::move(slice), head);
  graph.set_input(head, 0, last);
  return static_cast<std::size_t>(shape[is_transposed ? 0 : 1]);
}

}  // namespace

Result<ReadingGraph> make_reading_graph(Graph& graph) {
  ReadingGraph made;
  CTK_CHECK(check_ends(graph));
  CTK_TRY(made.positions, open_positions(graph));
  CTK_TRY(made.vocabulary, cut_head(graph));
  return made;
}

}  // namespace ctk::runtime
