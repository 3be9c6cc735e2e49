#include "compress/quantize/notes.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <set>

#include "core/printable.h"
#include "graph/layer.h"
#include "graph/ops/op.h"
#include "graph/shapes.h"

namespace ctk::quantization {
namespace {

using calibrate::Range;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::OpKind;
using graph::ValueId;

class NotePlacer {
 public:
  NotePlacer(Graph& graph, const std::map<std::string, Range>& ranges, std::vector<graph::InferredValue> infos)
      : graph_(graph), ranges_(ranges), infos_(std::move(infos)) {}

  Result<NoteOutcome> run() {
    for (std::size_t i = 0; i < graph_.value_capacity(); ++i)
      graph_.value(ValueId{static_cast<std::uint32_t>(i)}).activation_quant.reset();
    for (const graph::Layer& layer : graph::layers_of(graph_)) {
      if (graph_.node(layer.node).scheme.is_integer_activation()) {
        integer_layers_.insert(layer.node);
        wish(layer.input);
      }
    }
    while (!pending_.empty()) {
      const ValueId value = pending_.back();
      pending_.pop_back();
      pass_backwards(value);
    }
    CTK_CHECK(assign());
    return std::move(outcome_);
  }

 private:
  void wish(ValueId value) {
    if (wished_.insert(value).second) pending_.push_back(value);
  }

  // The node whose result `value` is, seen through an activation that it absorbs.
  NodeId source_of(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    if (!producer.is_valid()) return {};
    const NodeId host = graph_.node(producer).absorbed_by;
    const Op op = graph_.node(producer).op;
    const bool is_activation = op == Op::Relu || op == Op::Clip;
    return host.is_valid() && is_activation ? host : producer;
  }

  std::vector<ValueId> data_inputs(const Node& node) const {
    std::vector<ValueId> inputs;
    const bool reads_all = node.op == Op::Concat || node.op == Op::Add || node.op == Op::Mul;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].is_valid() && (reads_all || i == 0)) inputs.push_back(node.inputs[i]);
    }
    return inputs;
  }

  bool has_equal_shapes(const Node& node) const {
    const auto& a = infos_[node.inputs[0].index];
    const auto& b = infos_[node.inputs[1].index];
    return a.known && b.known && a.info.shape == b.info.shape;
  }

  bool computes_on_codes(const Node& node) const {
    if (node.op == Op::unknown) return false;
    if (node.op == Op::Concat) return !has_wide_join(node);
    if (node.op == Op::Add || node.op == Op::Mul) return node.inputs.size() == 2 && has_equal_shapes(node);
    const OpKind kind = graph::rules_of(node.op).kind;
    if (kind == OpKind::unary) return true;
    if (kind == OpKind::pool || node.op == Op::ReduceMean || node.op == Op::Resize) {
      const auto& x = infos_[node.inputs[0].index];
      return x.known && (x.info.shape.size() == 3 || x.info.shape.size() == 4);
    }
    return kind == OpKind::data_movement && node.outputs.size() == 1;
  }

  double reach(ValueId value) const {
    const auto found = ranges_.find(graph_.value(value).name);
    if (found == ranges_.end()) return 0;
    return std::max(std::abs(static_cast<double>(found->second.low)),
                    std::abs(static_cast<double>(found->second.high)));
  }

  bool has_wide_join(const Node& node) const {
    double least = 0, most = 0;
    for (ValueId input : node.inputs) {
      const double r = reach(input);
      if (r == 0) continue;
      least = least == 0 ? r : std::min(least, r);
      most = std::max(most, r);
    }
    return least > 0 && most / least > kMaxJoinRatio;
  }

  bool comes_from_integer_layer(ValueId value, int depth = 0) const {
    if (wished_.contains(value)) return true;
    if (graph_.value(value).is_constant() || depth > 64) return false;
    const NodeId source = source_of(value);
    if (!source.is_valid()) return false;
    if (integer_layers_.contains(source)) return true;
    const Node& node = graph_.node(source);
    if (!computes_on_codes(node)) return false;
    for (ValueId input : data_inputs(node)) {
      if (!comes_from_integer_layer(input, depth + 1)) return false;
    }
    return true;
  }

  void pass_backwards(ValueId value) {
    const NodeId source = source_of(value);
    if (!source.is_valid() || integer_layers_.contains(source)) return;
    const Node& node = graph_.node(source);
    if (node.op == Op::Concat && has_wide_join(node)) {
      outcome_.warnings.push_back(printable(graph_.address(source)) +
                                  " (Concat): its operands' ranges differ by more than " +
                                  std::to_string(static_cast<int>(kMaxJoinRatio)) +
                                  " times; the join is left float so that the smaller one keeps its precision");
      return;
    }
    if (!computes_on_codes(node)) return;
    const std::vector<ValueId> inputs = data_inputs(node);
    for (ValueId input : inputs) {
      if (!comes_from_integer_layer(input)) return;
    }
    for (ValueId input : inputs) wish(input);
  }

  bool hands_codes_through(const Node& node) const {
    if (node.op == Op::MaxPool) return true;
    if (node.op == Op::Resize) return node.attributes.get_string("mode", "nearest") == "nearest";
    return node.op != Op::unknown && node.op != Op::Concat && graph::rules_of(node.op).kind == OpKind::data_movement;
  }

  Status assign() {
    const auto note = [&](ValueId value) -> Status {
      if (!wished_.contains(value)) return {};
      graph::Value& target = graph_.value(value);
      ++outcome_.noted;
      if (target.producer.is_valid()) {
        const Node& node = graph_.node(target.producer);
        if (hands_codes_through(node) && graph_.value(node.inputs[0]).activation_quant) {
          target.activation_quant = graph_.value(node.inputs[0]).activation_quant;
          return {};
        }
      }
      const auto found = ranges_.find(target.name);
      if (found == ranges_.end()) return internal_error("\"" + target.name + "\" must be coded but was not calibrated");
      target.activation_quant = activation_quant_from_range(found->second.low, found->second.high);
      warn_of_tiny(target.name, found->second);
      return {};
    };
    for (ValueId input : graph_.inputs()) CTK_CHECK(note(input));
    for (NodeId id : graph_.order()) {
      for (ValueId output : graph_.node(id).outputs) {
        if (output.is_valid()) CTK_CHECK(note(output));
      }
    }
    return {};
  }

  // A step below the smallest normal number is raised to it, and then 8 bits do not resolve the range.
  void warn_of_tiny(const std::string& name, const Range& range) {
    const double width = std::max(0.0, static_cast<double>(range.high)) - std::min(0.0, static_cast<double>(range.low));
    if (width == 0.0 || width / 255.0 >= static_cast<double>(std::numeric_limits<float>::min())) return;
    char text[80];
    std::snprintf(text, sizeof text, "%.3g to %.3g", static_cast<double>(range.low), static_cast<double>(range.high));
    outcome_.warnings.push_back("value \"" + name + "\": its range " + text +
                                " is too small for steps that float32 can hold, so most of it becomes 0. Scale the "
                                "network's values up, or keep its readers float with `ignore`");
  }

  Graph& graph_;
  const std::map<std::string, Range>& ranges_;
  std::vector<graph::InferredValue> infos_;
  std::set<NodeId> integer_layers_;
  std::set<ValueId> wished_;
  std::vector<ValueId> pending_;
  NoteOutcome outcome_;
};

}  // namespace

Result<NoteOutcome> place_activation_notes(Graph& graph, const std::map<std::string, Range>& ranges,
                                           std::span<const Shape> input_shapes) {
  std::vector<graph::InferredValue> infos(graph.value_capacity());
  const auto layers = graph::layers_of(graph);
  const bool needs_shapes = std::any_of(layers.begin(), layers.end(), [&](const graph::Layer& layer) {
    return graph.node(layer.node).scheme.is_integer_activation();
  });
  if (needs_shapes) {
    CTK_TRY(infos, graph::infer_shapes(graph, input_shapes, true));
  }
  return NotePlacer(graph, ranges, std::move(infos)).run();
}

Result<std::vector<ValueId>> values_to_observe(const Graph& graph, std::span<const Shape> input_shapes) {
  std::vector<ValueId> values;
  CTK_TRY(const auto infos, graph::infer_shapes(graph, input_shapes, true));
  const auto consider = [&](ValueId id) {
    const auto& info = infos[id.index];
    if (info.known && info.info.dtype == DType::f32 && !info.info.constant) values.push_back(id);
  };
  for (ValueId id : graph.inputs()) consider(id);
  for (NodeId node : graph.order()) {
    for (ValueId id : graph.node(node).outputs) {
      if (id.is_valid()) consider(id);
    }
  }
  return values;
}

}  // namespace ctk::quantization
