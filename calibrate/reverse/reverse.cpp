#include "calibrate/reverse/reverse.h"

#include <algorithm>
#include <set>

#include "calibrate/reverse/rules.h"
#include "core/printable.h"

namespace ctk::calibrate {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

Error no_rule_error(const Graph& graph, NodeId id) {
  std::string known;
  for (const ReverseRow& row : reverse_rows()) known += (known.empty() ? "" : ", ") + std::string(name_of(row.op));
  return input_error(printable(graph.address(id)) + ": expected an operator that gradients go back through (" + known +
                     "), found " + printable(graph.node(id).op_type) +
                     ". Choose another sensitivity metric, such as kl, which needs no gradients.");
}

// `to` += `from`, element by element.
void add(const Tensor& from, Tensor& to) {
  add_summed(from.view(), to.mutable_view());
}

}  // namespace

Result<ReversePass> ReversePass::create(const Graph& graph, std::span<const Shape> input_shapes,
                                        std::vector<ValueId> targets) {
  if (graph.outputs().empty()) return input_error("expected a graph with an output, found none. Export one.");
  ReversePass pass(graph);
  CTK_TRY(pass.infos_, graph::infer_shapes(graph, input_shapes, true));
  pass.is_target_.assign(graph.value_capacity(), false);
  for (ValueId id : targets) pass.is_target_[id.index] = true;
  pass.needs_gradient_ = pass.is_target_;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const bool needs = std::ranges::any_of(
        node.inputs, [&](ValueId input) { return input.is_valid() && pass.needs_gradient_[input.index]; });
    for (ValueId output : node.outputs) {
      if (!needs || !output.is_valid() || !pass.infos_[output.index].known) continue;
      const auto& info = pass.infos_[output.index].info;
      if (info.dtype == DType::f32 && !info.constant) pass.needs_gradient_[output.index] = true;
    }
  }
  // Nodes that the output depends on, and that depend on a target.
  std::set<ValueId> reached = {graph.outputs()[0]};
  std::set<ValueId> keep;
  for (auto it = graph.order().rbegin(); it != graph.order().rend(); ++it) {
    const Node& node = graph.node(*it);
    const bool is_reached = std::ranges::any_of(node.outputs, [&](ValueId id) { return reached.contains(id); });
    const bool goes_on =
        std::ranges::any_of(node.inputs, [&](ValueId id) { return id.is_valid() && pass.needs_gradient_[id.index]; });
    if (!is_reached || !goes_on) continue;
    const ReverseRow* row = find_reverse_row(node.op);
    if (row == nullptr) return no_rule_error(graph, *it);
    for (ValueId id : node.outputs) {
      if (id.is_valid() && !pass.infos_[id.index].known) return no_rule_error(graph, *it);
    }
    pass.order_.push_back(*it);
    for (const ValueId& id : node.inputs) {
      if (!id.is_valid()) continue;
      if (pass.needs_gradient_[id.index]) reached.insert(id);
      const bool is_known = graph.value(id).is_constant() || pass.infos_[id.index].info.constant.has_value();
      const bool is_control = pass.infos_[id.index].info.dtype != DType::f32;
      const bool other_is_wanted = std::ranges::any_of(node.inputs, [&](const ValueId& other) {
        return &other != &id && other.is_valid() && pass.needs_gradient_[other.index];
      });
      const bool is_read = row->reads == Reads::inputs || (row->reads == Reads::other_inputs && other_is_wanted);
      if (!is_known && (is_read || is_control)) keep.insert(id);
    }
    if (row->reads == Reads::output) keep.insert(node.outputs[0]);
  }
  pass.keep_.assign(keep.begin(), keep.end());
  return pass;
}

Status ReversePass::run(const Values& values, const Tensor& output_gradient, const GradientVisitor& visitor) const {
  const ValueId last = graph_->outputs()[0];
  if (output_gradient.shape() != shape(last)) {
    return internal_error("gradient of the output: expected shape " + to_string(shape(last)) + ", found " +
                          to_string(output_gradient.shape()));
  }
  Gradients gradients;
  gradients[last] = output_gradient.clone();
  const auto finish = [&](ValueId id) -> Status {
    const auto found = gradients.find(id);
    if (found == gradients.end()) return {};
    if (is_target_[id.index] && visitor.target) return visitor.target(id, found->second);
    return {};
  };
  const auto view_of = [&](ValueId id) -> TensorView {
    if (!id.is_valid()) return {};
    const auto& info = infos_[id.index].info;
    if (graph_->value(id).constant) return graph_->value(id).constant->view();
    if (info.constant) return info.constant->view();
    const auto kept = values.find(id);
    return {info.dtype, info.shape, kept == values.end() ? nullptr : kept->second.data()};
  };
  for (NodeId id : order_) {
    const Node& node = graph_->node(id);
    std::vector<TensorView> inputs, outputs, output_gradients;
    std::vector<MutableTensorView> input_gradients;
    for (ValueId input : node.inputs) inputs.push_back(view_of(input));
    for (ValueId output : node.outputs) {
      outputs.push_back(view_of(output));
      CTK_CHECK(finish(output));
      const auto found = gradients.find(output);
      output_gradients.push_back(found == gradients.end() ? TensorView{} : found->second.view());
    }
    const bool is_zero = std::ranges::none_of(output_gradients, [](const TensorView& v) { return v.data != nullptr; });
    if (is_zero) continue;
    std::optional<Tensor> alone;  // the first input's, where somebody wants to see it
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (!input.is_valid() || !needs_gradient_[input.index]) {
        input_gradients.push_back({});
        continue;
      }
      if (!gradients.contains(input)) {
        CTK_TRY(gradients[input], Tensor::zeros(DType::f32, shape(input)));
      }
      if (i == 0 && visitor.contribution) {
        CTK_TRY(alone, Tensor::zeros(DType::f32, shape(input)));
      }
      input_gradients.push_back(i == 0 && alone ? alone->mutable_view() : gradients[input].mutable_view());
    }
    auto done = find_reverse_row(node.op)->run({node, inputs, outputs, output_gradients, input_gradients});
    if (!done) return std::move(done).error().with_context(printable(graph_->address(id)));
    if (alone) {
      CTK_CHECK(visitor.contribution(id, *alone));
      add(*alone, gradients[node.inputs[0]]);
    }
    for (ValueId output : node.outputs) gradients.erase(output);
  }
  for (const auto& [id, gradient] : gradients) CTK_CHECK(finish(id));  // those nothing goes back through
  return {};
}

Result<Gradients> backward(const Graph& graph, std::span<const Shape> input_shapes, std::vector<ValueId> targets,
                           const Values& values, const Tensor& output_gradient) {
  CTK_TRY(const ReversePass pass, ReversePass::create(graph, input_shapes, std::move(targets)));
  Gradients gradients;
  GradientVisitor visitor;
  visitor.target = [&](ValueId id, const Tensor& gradient) -> Status {
    gradients[id] = gradient.clone();
    return {};
  };
  CTK_CHECK(pass.run(values, output_gradient, visitor));
  return gradients;
}

}  // namespace ctk::calibrate
