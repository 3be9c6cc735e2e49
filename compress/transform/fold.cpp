#include "compress/transform/fold.h"

#include <algorithm>
#include <numeric>
#include <optional>

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

using Features = std::vector<std::uint32_t>;  // of each index along an axis: a feature of the group's input

class FoldFinder {
 public:
  FoldFinder(const Graph& graph, const InputGroup& group, const std::vector<graph::InferredValue>& infos)
      : graph_(graph), group_(group), infos_(infos), parent_(group.features) {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }

  Fold run() {
    Features features(group_.features);
    std::iota(features.begin(), features.end(), 0u);
    const graph::Value& value = graph_.value(group_.input);
    std::string others = graph_.is_output(group_.input) ? "the graph's outputs" : "";
    for (const NodeId reader : value.consumers) {
      if (std::ranges::any_of(group_.layers, [&](const Layer& layer) { return layer.node == reader; })) continue;
      others += (others.empty() ? "" : ", ") + graph_.address(reader);
    }
    bool is_found = false;
    if (!others.empty())
      fold_.reason = printable(others) + " also reads it";
    else if (const auto* shape = shape_of(group_.input))
      is_found = visit(group_.input, group_.has_channels ? 1 : shape->size() - 1, features);
    else
      fold_.reason = "its shape is not known";
    if (!is_found) {
      fold_.edits.clear();
      std::iota(parent_.begin(), parent_.end(), 0u);
    }
    for (std::uint32_t f = 0; f < parent_.size(); ++f) fold_.class_of.push_back(root(f));
    return std::move(fold_);
  }

 private:
  const Shape* shape_of(ValueId id) const { return infos_[id.index].known ? &infos_[id.index].info.shape : nullptr; }

  std::uint32_t root(std::uint32_t f) {
    while (parent_[f] != f) f = parent_[f] = parent_[parent_[f]];
    return f;
  }
  void unite(std::uint32_t a, std::uint32_t b) {
    a = root(a), b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

  bool end(const Node& node, NodeId id, const std::string& why) {
    fold_.reason = printable(graph_.address(id)) + " (" + node.op_type + ") " + why;
    return false;
  }

  void edit(NodeId node, std::size_t input, ElementMap index_of, const Features& features, std::size_t spread = 1) {
    fold_.edits.push_back({node, input, [index_of, features](std::size_t e) { return features[index_of(e)]; }, spread});
  }
  void told(NodeId node) { fold_.where += (fold_.where.empty() ? "" : ", ") + graph_.address(node); }

  // The value is one that only the walk reads: then features along `axis` may be scaled by what makes it.
  bool next(ValueId value, NodeId reader, std::size_t axis, const Features& features) {
    const graph::Node& node = graph_.node(reader);
    if (!graph::only_reader(graph_, value))
      return end(node, reader, "reads \"" + printable(graph_.value(value).name) + "\", which is read elsewhere too");
    return visit(value, axis, features);
  }

  bool visit(ValueId value, std::size_t axis, const Features& features) {
    const NodeId id = graph_.value(value).producer;
    if (!id.is_valid()) {
      fold_.reason = printable(graph_.value(value).name) + " is an input of the graph";
      return false;
    }
    const Node& node = graph_.node(id);
    const Shape* shape = shape_of(value);
    if (shape == nullptr || node.outputs[0] != value) return end(node, id, "has a result of unknown shape");
    if (const auto layer = graph::layer_of(graph_, id)) return fold_into_layer(*layer, axis, *shape, features);
    const bool is_last = axis + 1 == shape->size();
    switch (node.op) {
      case Op::RMSNormalization:
      case Op::LayerNormalization:
        return is_last ? fold_into_norm(id, features) : end(node, id, "normalizes along another dimension");
      case Op::Relu:
      case Op::LeakyRelu:
      case Op::Identity:
      case Op::Dropout:
        return next(node.inputs[0], id, axis, features);
      case Op::MaxPool:
      case Op::AveragePool:
      case Op::GlobalAveragePool:
        if (axis == 1) return next(node.inputs[0], id, axis, features);
        return end(node, id, "pools along it");
      case Op::Squeeze:
      case Op::Unsqueeze:
      case Op::Flatten:
      case Op::Reshape:
        return through_reshape(id, axis, *shape, features);
      case Op::Transpose:
        return through_transpose(id, axis, *shape, features);
      case Op::Attention:
        return is_last ? through_attention(id, features) : end(node, id, "has heads along another dimension");
      case Op::Mul:
      case Op::Add:
        return through_sum_or_product(id, axis, *shape, features);
      default:
        return end(node, id, "does not keep factors of features");
    }
  }

  bool fold_into_layer(const Layer& layer, std::size_t axis, const Shape& shape, const Features& features) {
    const Node& node = graph_.node(layer.node);
    const bool is_product = node.op == Op::Gemm || node.op == Op::MatMul;
    if (axis != (is_product ? shape.size() - 1 : 1) || node.op == Op::ConvTranspose)
      return end(node, layer.node, "has its channels along another dimension");
    if (graph_.value(layer.weight).quantized != nullptr) return end(node, layer.node, "is coded already");
    const auto readers = graph_.value(layer.weight).consumers.size();
    if (readers != 1 || graph_.is_output(layer.weight)) return end(node, layer.node, "shares its weight");
    edit(layer.node, 1, channels_of_weight(graph_, layer), features);
    if (layer.bias.is_valid()) {
      const std::size_t channels = features.size();
      edit(
          layer.node, 2, [channels](std::size_t e) { return e % channels; }, features, channels);
    }
    told(layer.node);
    return true;
  }

  bool fold_into_norm(NodeId id, const Features& features) {
    const Node& node = graph_.node(id);
    const std::size_t last = node.op == Op::LayerNormalization ? 3 : 2;
    for (std::size_t i = 1; i < last; ++i) {
      if (graph::is_omitted(node, i) && i == 2) continue;
      const Tensor* constant = graph::constant_of(graph_, node, i);
      if (constant == nullptr || constant->dtype() != DType::f32 || constant->size() != features.size())
        return end(node, id, "has no scale for each feature");
      edit(
          id, i, [](std::size_t e) { return e; }, features);
    }
    told(id);
    return true;
  }

  bool through_reshape(NodeId id, std::size_t axis, const Shape& out, const Features& features) {
    const Node& node = graph_.node(id);
    const Shape* in = shape_of(node.inputs[0]);
    if (in == nullptr) return end(node, id, "reads a value of unknown shape");
    const auto behind = [](const Shape& shape, std::size_t at) {
      std::int64_t product = 1;
      for (std::size_t d = at + 1; d < shape.size(); ++d) product *= shape[d];
      return product;
    };
    const std::int64_t inner = behind(out, axis), size = out[axis];
    for (std::size_t a = 0; a < in->size(); ++a) {
      const std::int64_t in_inner = behind(*in, a);
      if (in_inner == inner && (*in)[a] == size) return next(node.inputs[0], id, a, features);
      // Flattened features: [C, H, W] becomes C * H * W in a row, H * W of which share a channel.
      if (a != 1 || inner != 1 || in_inner <= 1 || (*in)[a] * in_inner != size) continue;
      Features channels(static_cast<std::size_t>((*in)[a]));
      for (std::size_t i = 0; i < features.size(); ++i) {
        const std::size_t channel = i / static_cast<std::size_t>(in_inner);
        if (i % static_cast<std::size_t>(in_inner) == 0) channels[channel] = features[i];
        unite(channels[channel], features[i]);
      }
      return next(node.inputs[0], id, a, channels);
    }
    return end(node, id, "cuts the features otherwise");
  }

  bool through_transpose(NodeId id, std::size_t axis, const Shape& out, const Features& features) {
    const Node& node = graph_.node(id);
    const auto perm = node.attributes.get_ints("perm");
    const std::size_t from = perm.empty() ? out.size() - 1 - axis : static_cast<std::size_t>(perm[axis]);
    return next(node.inputs[0], id, from, features);
  }

  // Every output is a mean of values with weights that do not depend on them.
  bool through_attention(NodeId id, const Features& features) {
    const Node& node = graph_.node(id);
    const Shape* v = node.inputs.size() > 2 ? shape_of(node.inputs[2]) : nullptr;
    const auto heads = static_cast<std::size_t>(node.attributes.get_int("q_num_heads", 0));
    const auto kv_heads = static_cast<std::size_t>(node.attributes.get_int("kv_num_heads", 0));
    const bool is_plain = v != nullptr && v->size() == 3 && heads != 0 && kv_heads != 0 && graph::is_omitted(node, 4) &&
                          graph::is_omitted(node, 5) && node.outputs.size() == 1;
    if (!is_plain) return end(node, id, "has caches or heads in another form");
    const std::size_t size = features.size() / heads, each = heads / kv_heads;
    Features values(kv_heads * size);
    for (std::size_t i = 0; i < features.size(); ++i) {
      const std::size_t head = i / size, to = head / each * size + i % size;
      if (head % each == 0) values[to] = features[i];
      unite(values[to], features[i]);
    }
    return next(node.inputs[2], id, v->size() - 1, values);
  }

  // A constant operand of one number, or of one number a feature.
  std::optional<std::size_t> constant_operand(const Node& node, std::size_t axis, const Shape& out) const {
    for (std::size_t i = 0; i < 2; ++i) {
      const Tensor* constant = graph::constant_of(graph_, node, i);
      if (constant == nullptr || constant->dtype() != DType::f32) continue;
      const Shape& shape = constant->shape();
      if (constant->size() == 1) return i;
      if (shape.size() > out.size()) continue;
      const std::size_t offset = out.size() - shape.size();
      if (axis < offset) continue;
      const bool is_a_vector =
          static_cast<std::int64_t>(constant->size()) == out[axis] && shape[axis - offset] == out[axis];
      if (is_a_vector) return i;
    }
    return std::nullopt;
  }

  bool through_sum_or_product(NodeId id, std::size_t axis, const Shape& out, const Features& features) {
    const Node& node = graph_.node(id);
    const bool is_sum = node.op == Op::Add;
    if (const auto at = constant_operand(node, axis, out)) {
      const std::size_t other = 1 - *at;
      const bool is_one_number = graph::constant_of(graph_, node, *at)->size() == 1 && out[axis] != 1;
      if (is_one_number && is_sum) return end(node, id, "adds one number to all features");
      if (!is_one_number)
        edit(
            id, *at, [](std::size_t e) { return e; }, features);
      if (!is_sum && !is_one_number) {
        told(id);
        return true;
      }
      const Shape* in = shape_of(node.inputs[other]);
      if (in == nullptr || *in != out) return end(node, id, "spreads its operand");
      return next(node.inputs[other], id, axis, features);
    }
    if (is_sum) return end(node, id, "adds two values");
    // Either factor may take it; the one that a layer makes is the better place.
    for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
      const Shape* in = shape_of(node.inputs[i]);
      if (in == nullptr || *in != out || node.inputs[0] == node.inputs[1]) continue;
      const std::size_t edits = fold_.edits.size();
      const std::vector<std::uint32_t> parents = parent_;
      if (next(node.inputs[i], id, axis, features)) return true;
      fold_.edits.resize(edits);
      parent_ = parents;
    }
    return end(node, id, "multiplies two values neither of which a layer alone makes");
  }

  const Graph& graph_;
  const InputGroup& group_;
  const std::vector<graph::InferredValue>& infos_;
  std::vector<std::uint32_t> parent_;
  Fold fold_;
};

// A Mul by 1 / factors between the value and the group's layers.
void insert_mul(Graph& graph, const InputGroup& group, const std::vector<float>& inverse,
                const std::size_t dimensions_behind) {
  const std::string name = graph.address(group.layers[0].node) + ".input_scale";
  Shape shape(dimensions_behind + 1, 1);
  shape[0] = static_cast<std::int64_t>(inverse.size());
  Node node;
  node.name = graph.unique_name(name);
  node.op_type = "Mul";
  node.inputs = {group.input,
                 graph.add_constant(graph.unique_name(name + ".factors"), Tensor::of<float>(shape, inverse))};
  const ValueId scaled = graph.add_value(graph.unique_name(name + ".y"), DType::f32);
  node.outputs = {scaled};
  graph.add_node(std::move(node), group.layers[0].node);
  for (const Layer& layer : group.layers) graph.set_input(layer.node, 0, scaled);
}

}  // namespace

Fold find_fold(const Graph& graph, const InputGroup& group, const std::vector<graph::InferredValue>& infos) {
  return FoldFinder(graph, group, infos).run();
}

void scale_inputs(Graph& graph, const InputGroup& group, const Fold& fold, std::span<const float> factors) {
  std::vector<float> inverse(factors.size());
  for (std::size_t i = 0; i < factors.size(); ++i) inverse[i] = 1.0f / factors[i];
  std::set<ValueId> done;  // layers of the group may share a weight
  for (const Layer& layer : group.layers) {
    if (!done.insert(layer.weight).second) continue;
    Tensor scaled = graph.value(layer.weight).constant->clone();
    const ElementMap feature = features_of_weight(graph, layer);
    const auto values = scaled.mutable_values<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[feature(i)];
    graph.value(layer.weight).constant = std::move(scaled);
  }
  if (fold.edits.empty()) {
    const graph::Node& first = graph.node(group.layers[0].node);
    const std::size_t rank = graph.value(group.layers[0].weight).constant->shape().size();
    const bool is_conv = first.op == Op::Conv;
    insert_mul(graph, group, inverse, is_conv ? rank - 2 : 0);
    return;
  }
  for (const Fold::Edit& edit : fold.edits)
    scale_constant(graph, edit.node, edit.input, edit.feature_of, inverse, edit.spread);
}

}  // namespace ctk::transform
