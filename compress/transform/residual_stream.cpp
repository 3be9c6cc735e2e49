#include "compress/transform/residual_stream.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/printable.h"
#include "graph/passes/rewrite.h"

namespace ctk::transform {
namespace {

using graph::Graph;
using graph::Layer;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

bool is_product(const Node& node) {
  return node.op == Op::Gemm || node.op == Op::MatMul;
}

class StreamFinder {
 public:
  explicit StreamFinder(const Graph& graph) : graph_(graph) {}

  Result<ResidualStream> run() {
    for (const NodeId id : graph_.order()) {
      if (is_embedding(id)) join(graph_.node(id).outputs[0]);
    }
    if (pending_.empty())
      return config_error("expected an embedding (Gather of rows of a constant), found none. " + remedy());
    while (!pending_.empty()) {
      const ValueId value = pending_.back();
      pending_.pop_back();
      CTK_CHECK(made_by(value));
      if (graph_.is_output(value) || graph::is_captured(graph_, value))
        return config_error("expected no output of the graph among the sums, found \"" +
                            printable(graph_.value(value).name) + "\". " + remedy());
      for (const NodeId reader : graph_.value(value).consumers) CTK_CHECK(read_by(reader, value));
    }
    if (stream_.norms.empty()) return config_error("expected RMSNormalization over the sums, found none. " + remedy());
    const auto by_place = [](const auto& a, const auto& b) { return a.index < b.index; };
    std::ranges::sort(stream_.norms, by_place);
    return std::move(stream_);
  }

 private:
  static std::string remedy() { return "Leave this method out"; }

  bool is_embedding(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.op != Op::Gather || node.attributes.get_int("axis", 0) != 0) return false;
    const Tensor* rows = graph::constant_of(graph_, node, 0);
    return rows != nullptr && rows->dtype() == DType::f32 && rows->shape().size() == 2;
  }

  void join(ValueId value) {
    if (values_.insert(value).second) pending_.push_back(value);
  }

  Error obstacle(NodeId id, const std::string& why) const {
    return config_error(printable(graph_.address(id)) + " (" + graph_.node(id).op_type + "): " + why + ". " + remedy());
  }

  // A constant of one number a feature, or of one number alone.
  const Tensor* constant_beside(const Node& node, ValueId value) const {
    return graph::constant_of(graph_, node, node.inputs[0] == value ? 1 : 0);
  }

  Status set_features(NodeId id, std::int64_t features) {
    if (stream_.features == 0) stream_.features = static_cast<std::size_t>(features);
    if (stream_.features == static_cast<std::size_t>(features)) return {};
    return obstacle(id, "expected " + std::to_string(stream_.features) + " features as elsewhere, found " +
                            std::to_string(features));
  }

  Status made_by(ValueId value) {
    const NodeId id = graph_.value(value).producer;
    if (!id.is_valid())
      return config_error("expected sums that the network makes, found input \"" + printable(graph_.value(value).name) +
                          "\". " + remedy());
    const Node& node = graph_.node(id);
    if (is_embedding(id)) {
      if (std::ranges::find(stream_.embeddings, id) == stream_.embeddings.end()) stream_.embeddings.push_back(id);
      return set_features(id, graph_.value(node.inputs[0]).constant->shape()[1]);
    }
    if (const auto layer = graph::layer_of(graph_, id); layer && is_product(node)) {
      const graph::Value& weight = graph_.value(layer->weight);
      if (weight.quantized != nullptr) return obstacle(id, "its weight is coded already");
      if (weight.consumers.size() != 1) return obstacle(id, "its weight is shared");
      stream_.writers.push_back(*layer);
      return set_features(id, layer->channels);
    }
    if (node.op == Op::Add || node.op == Op::Mul) return joined_by(id);
    return obstacle(id, "makes a part of the sums that cannot be turned");
  }

  // Operands of an Add belong to the stream too; a Mul may only be by one number.
  Status joined_by(NodeId id) {
    const Node& node = graph_.node(id);
    for (std::size_t i = 0; i < 2; ++i) {
      const Tensor* constant = graph::constant_of(graph_, node, i);
      if (constant == nullptr) continue;
      if (node.op == Op::Mul && constant->size() != 1)
        return obstacle(id, "multiplies each feature by a number of its own");
      if (node.op == Op::Add) {
        if (constant->size() == 1 || constant->size() != static_cast<std::size_t>(constant->shape().back()))
          return obstacle(id, "adds a constant that is not one number for each feature");
        if (std::ranges::find(stream_.biases, id) == stream_.biases.end()) stream_.biases.push_back(id);
      }
      join(node.inputs[1 - i]);
      return {};
    }
    if (node.op == Op::Mul) return obstacle(id, "multiplies two values");
    for (const ValueId input : node.inputs) join(input);
    return {};
  }

  Status read_by(NodeId id, ValueId value) {
    const Node& node = graph_.node(id);
    if (node.op == Op::Add || node.op == Op::Mul) {
      if (node.op == Op::Mul && constant_beside(node, value) == nullptr) return obstacle(id, "multiplies two values");
      CTK_CHECK(joined_by(id));
      join(node.outputs[0]);
      return {};
    }
    if (node.op == Op::LayerNormalization)
      return obstacle(id,
                      "takes the mean over features away, which a rotation does not keep; expected "
                      "RMSNormalization");
    if (node.op != Op::RMSNormalization) return obstacle(id, "reads the sums feature by feature");
    if (std::ranges::find(stream_.norms, id) != stream_.norms.end()) return {};
    const Tensor* scale = graph::constant_of(graph_, node, 1);
    if (scale == nullptr || scale->dtype() != DType::f32 || node.inputs[0] != value)
      return obstacle(id, "has no constant scale");
    CTK_CHECK(set_features(id, static_cast<std::int64_t>(scale->size())));
    stream_.norms.push_back(id);
    const ValueId normed = node.outputs[0];
    if (graph_.is_output(normed) || graph::is_captured(graph_, normed))
      return obstacle(id, "is an output of the graph");
    for (const NodeId reader : graph_.value(normed).consumers) {
      const auto layer = graph::layer_of(graph_, reader);
      const bool is_plain = layer && is_product(graph_.node(reader)) && layer->input == normed &&
                            graph_.node(reader).attributes.get_int("transA", 0) == 0 &&
                            layer->reduction == static_cast<std::int64_t>(scale->size());
      if (!is_plain) return obstacle(reader, "reads what a norm gives and is no layer with a constant weight");
      if (graph_.value(layer->weight).quantized != nullptr) return obstacle(reader, "its weight is coded already");
      stream_.readers.push_back(*layer);
    }
    return {};
  }

  const Graph& graph_;
  std::set<ValueId> values_;
  std::vector<ValueId> pending_;
  ResidualStream stream_;
};

// The layer whose result this is, through Squeeze and Unsqueeze.
std::optional<Layer> layer_behind(const Graph& graph, ValueId value) {
  while (true) {
    if (!graph::only_reader(graph, value)) return std::nullopt;
    const NodeId id = graph.value(value).producer;
    if (!id.is_valid()) return std::nullopt;
    const Node& node = graph.node(id);
    if (is_product(node)) return graph::layer_of(graph, id);
    if (node.op != Op::Squeeze && node.op != Op::Unsqueeze) return std::nullopt;
    value = node.inputs[0];
  }
}
std::optional<Layer> layer_before(const Graph& graph, ValueId value) {
  while (true) {
    const auto reader = graph::only_reader(graph, value);
    if (!reader) return std::nullopt;
    const Node& node = graph.node(*reader);
    if (is_product(node)) {
      const auto layer = graph::layer_of(graph, *reader);
      const bool reads = layer && layer->input == value && node.attributes.get_int("transA", 0) == 0;
      return reads ? layer : std::nullopt;
    }
    if (node.op != Op::Squeeze && node.op != Op::Unsqueeze) return std::nullopt;
    value = node.outputs[0];
  }
}

}  // namespace

Result<ResidualStream> find_residual_stream(const Graph& graph) {
  return StreamFinder(graph).run();
}

std::vector<ValueHeads> find_value_heads(const Graph& graph) {
  std::vector<ValueHeads> found;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const std::int64_t heads = node.attributes.get_int("q_num_heads", 0);
    const std::int64_t kv_heads = node.attributes.get_int("kv_num_heads", 0);
    if (node.op != Op::Attention || heads == 0 || kv_heads == 0 || node.outputs.size() != 1) continue;
    if (!graph::is_omitted(node, 4) || !graph::is_omitted(node, 5)) continue;
    const auto values = layer_behind(graph, node.inputs[2]), output = layer_before(graph, node.outputs[0]);
    if (!values || !output || values->channels % kv_heads != 0) continue;
    const auto is_free = [&](const Layer& layer) {
      const graph::Value& weight = graph.value(layer.weight);
      return weight.constant && weight.consumers.size() == 1 && !graph.is_output(layer.weight);
    };
    const std::int64_t size = values->channels / kv_heads;
    if (is_free(*values) && is_free(*output) && output->reduction == heads * size)
      found.push_back({*values, *output, static_cast<std::size_t>(size)});
  }
  return found;
}

}  // namespace ctk::transform
