#include "train/torch/torch_graph.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/printable.h"
#include "core/random.h"
#include "train/torch/tensors.h"

namespace ctk::train {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

constexpr std::size_t kMostPlans = 8;  // sets of input shapes that are remembered

bool is_layer(Op op) {
  return op == Op::Conv || op == Op::ConvTranspose || op == Op::Gemm || op == Op::MatMul;
}

// The role of input `index` of a node, were it a float constant.
bool is_trained_input(const Graph& graph, const Node& node, std::size_t index) {
  switch (node.op) {
    case Op::Conv:
    case Op::ConvTranspose:
    case Op::Gemm:
    case Op::LayerNormalization:
    case Op::BatchNormalization:
      return index == 1 || index == 2;
    case Op::MatMul:
    case Op::RMSNormalization:
    case Op::PRelu:
      return index == 1;
    case Op::Gather:
      return index == 0 && graph.value(node.inputs[0]).constant->shape().size() == 2;
    case Op::Add: {
      const ValueId other = node.inputs[1 - std::min<std::size_t>(index, 1)];
      const NodeId producer = graph.value(other).producer;
      return index < 2 && producer.is_valid() && is_layer(graph.node(producer).op) &&
             graph.value(node.inputs[index]).constant->size() > 1;
    }
    default:
      return false;
  }
}

bool is_statistic(const Node& node, std::size_t index) {
  return node.op == Op::BatchNormalization && (index == 3 || index == 4);
}

std::string where(const Graph& graph, NodeId id) {
  return "node \"" + printable(graph.address(id)) + "\" (" + graph.node(id).op_type + ")";
}

}  // namespace

Result<std::unique_ptr<TorchGraph>> TorchGraph::create(const Graph& graph, bool trains, const Graph* floats,
                                                       Ranges ranges) {
  for (NodeId id : graph.order()) {
    if (graph.node(id).op == Op::unknown) {
      return input_error(where(graph, id) +
                         ": expected an operator the trainer knows, found none of `compress list "
                         "ops`. Training has to run the whole network");
    }
  }
  std::unique_ptr<TorchGraph> made(new TorchGraph(graph));
  made->read_constants(trains, floats);
  made->ranges_ = ranges;
  if (trains && ranges != Ranges::fixed) made->read_ranges();
  return made;
}

std::size_t TorchGraph::add_parameter(std::string name, at::Tensor value, bool decays) {
  parameters_.push_back({std::move(name), std::move(value), decays});
  return parameters_.size() - 1;
}

void TorchGraph::read_constants(bool trains, const Graph* floats) {
  depends_.assign(graph_.value_capacity(), false);
  for (ValueId id : graph_.inputs()) depends_[id.index] = true;
  std::map<ValueId, bool> trained, statistic;
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].is_valid()) continue;
      const graph::Value& value = graph_.value(node.inputs[i]);
      if (!value.constant || value.constant->dtype() != DType::f32) continue;
      trained[node.inputs[i]] = trained[node.inputs[i]] || is_trained_input(graph_, node, i);
      statistic[node.inputs[i]] = statistic[node.inputs[i]] || is_statistic(node, i);
    }
  }
  for (std::size_t i = 0; i < graph_.value_capacity(); ++i) {
    const ValueId id{static_cast<std::uint32_t>(i)};
    const graph::Value& value = graph_.value(id);
    if (value.is_removed) continue;
    if (value.quantized) {
      read_codes(id, trains, floats);
      continue;
    }
    if (!value.constant || !scalar_type_of(value.constant->dtype())) continue;
    at::Tensor tensor = to_torch(*value.constant);
    if (statistic[id]) {
      statistics_[id] = tensor;
    } else if (trains && trained[id]) {
      by_value_[id] = add_parameter(value.name, tensor.requires_grad_(true), tensor.dim() >= 2);
      depends_[i] = true;
    } else {
      fixed_[id] = std::move(tensor);
    }
  }
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    const bool depends =
        std::ranges::any_of(node.inputs, [&](ValueId input) { return input.is_valid() && depends_[input.index]; });
    for (ValueId output : node.outputs) {
      if (output.is_valid()) depends_[output.index] = depends;
    }
  }
}

void TorchGraph::read_codes(ValueId id, bool trains, const Graph* floats) {
  const graph::Value& value = graph_.value(id);
  if (!trains) {
    fixed_[id] = to_torch(dequantize(*value.quantized));
    return;
  }
  const auto original = floats == nullptr ? std::nullopt : floats->find_value(value.name);
  const bool is_there = original && floats->value(*original).constant;
  const CodedWeight weight(value.quantized, is_there ? &*floats->value(*original).constant : nullptr);
  add_parameter(value.name, weight.weight, true);
  if (weight.scales.defined()) add_parameter(value.name + " scales", weight.scales, false);
  coded_.emplace(id, weight);
  depends_[id.index] = true;
}

// Values of one note that a node reads and writes hand codes on: they keep one scale.
void TorchGraph::read_ranges() {
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> noted;
    for (const auto* list : {&node.inputs, &node.outputs}) {
      for (ValueId value : *list) {
        if (value.is_valid() && graph_.value(value).activation_quant) noted.push_back(value);
      }
    }
    for (ValueId value : noted) {
      const ActivationQuant& quant = *graph_.value(value).activation_quant;
      if (range_of_.contains(value)) continue;
      const auto mate = std::ranges::find_if(noted, [&](ValueId other) {
        return range_of_.contains(other) && *graph_.value(other).activation_quant == quant;
      });
      range_of_[value] = mate != noted.end()
                             ? range_of_.at(*mate)
                             : add_parameter(graph_.value(value).name + " range",
                                             at::full({1}, quant.scale, at::kFloat).requires_grad_(true), false);
    }
  }
}

at::Tensor TorchGraph::rounded(ValueId id, const at::Tensor& x) const {
  const auto& quant = graph_.value(id).activation_quant;
  if (!quant) return x;
  const auto range = range_of_.find(id);
  if (range == range_of_.end()) return rounded_activation(x, *quant);
  return rounded_activation(x, parameters_[range->second].value, quant->zero_point, ranges_ == Ranges::clipped);
}

Status TorchGraph::adapt(std::int64_t rank, std::uint64_t seed) {
  const at::NoGradGuard no_gradient;
  std::vector<ValueId> weights;
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    if ((node.op != Op::MatMul && node.op != Op::Gemm) || node.inputs.size() < 2) continue;
    const bool is_trained = by_value_.contains(node.inputs[1]) || coded_.contains(node.inputs[1]);
    if (is_trained && std::ranges::count(weights, node.inputs[1]) == 0) weights.push_back(node.inputs[1]);
  }
  for (Parameter& parameter : parameters_) parameter.value.requires_grad_(false);
  for (ValueId id : weights) {
    const auto plain = by_value_.find(id);
    const at::Tensor& weight = plain != by_value_.end() ? parameters_[plain->second].value : coded_.at(id).weight;
    if (weight.dim() != 2) continue;
    const std::string& name = graph_.value(id).name;
    Random random(seed, "low rank of " + name);
    std::vector<float> values(static_cast<std::size_t>(rank * weight.size(1)));
    const double spread = 1 / std::sqrt(static_cast<double>(weight.size(1)));
    for (float& value : values) value = static_cast<float>(random.normal() * spread);
    const Adapter adapter{at::zeros({weight.size(0), rank}).requires_grad_(true),
                          at::tensor(values, at::kFloat).reshape({rank, weight.size(1)}).requires_grad_(true)};
    add_parameter(name + " up", adapter.up, true);
    add_parameter(name + " down", adapter.down, true);
    adapters_.emplace(id, adapter);
  }
  if (!adapters_.empty()) return {};
  return input_error("lora_rank: expected matrix products whose weights can be adapted, found none. Train everything");
}

at::Tensor TorchGraph::adapted(ValueId id, const at::Tensor& weight) const {
  const auto adapter = adapters_.find(id);
  return adapter == adapters_.end() ? weight : weight + adapter->second.difference();
}

at::Tensor TorchGraph::constant_of(ValueId id) const {
  if (const auto at = by_value_.find(id); at != by_value_.end()) return adapted(id, parameters_[at->second].value);
  if (const auto at = coded_.find(id); at != coded_.end()) {
    const auto adapter = adapters_.find(id);
    return adapter == adapters_.end() ? at->second.value() : at->second.value(adapter->second.difference());
  }
  if (const auto at = fixed_.find(id); at != fixed_.end()) return at->second;
  if (const auto at = statistics_.find(id); at != statistics_.end()) return at->second;
  return {};
}

Result<const TorchGraph::Plan*> TorchGraph::plan_for(std::span<const at::Tensor> inputs) {
  std::vector<Shape> shapes;
  for (const at::Tensor& input : inputs) shapes.emplace_back(input.sizes().begin(), input.sizes().end());
  for (const Plan& plan : plans_) {
    if (plan.shapes == shapes) return &plan;
  }
  CTK_CHECK(graph::check_input_shapes(graph_, shapes));
  Plan plan;
  plan.shapes = shapes;
  CTK_TRY(plan.infos, graph::infer_shapes(graph_, shapes));
  const auto order = graph_.order();
  std::vector<std::size_t> last(graph_.value_capacity(), order.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    const Node& node = graph_.node(order[at]);
    for (ValueId input : node.inputs) {
      if (input.is_valid()) last[input.index] = at;
    }
    for (ValueId output : node.outputs) {
      if (!output.is_valid()) continue;
      last[output.index] = at;
      const graph::ValueInfo& info = plan.infos[output.index].info;
      // Floats that are known may still depend on a parameter; integers come from shapes.
      if (info.constant && scalar_type_of(info.dtype) && (info.dtype != DType::f32 || !depends_[output.index])) {
        plan.constants[output] = to_torch(*info.constant);
      }
    }
  }
  plan.last_uses.resize(order.size());
  for (std::size_t i = 0; i < last.size(); ++i) {
    const ValueId id{static_cast<std::uint32_t>(i)};
    if (last[i] < order.size() && !graph_.is_output(id)) plan.last_uses[last[i]].push_back(id);
  }
  if (plans_.size() == kMostPlans) plans_.erase(plans_.begin());
  plans_.push_back(std::move(plan));
  return &plans_.back();
}

Result<Graph> TorchGraph::graph() const {
  const at::NoGradGuard no_gradient;
  Graph out = graph_.clone();
  const auto put = [&](ValueId id, const at::Tensor& tensor) -> Status {
    const at::Tensor before = as_torch(*graph_.value(id).constant);
    if (at::equal(before, tensor)) return {};
    CTK_TRY(out.value(id).constant, from_torch(tensor));
    return {};
  };
  for (const auto& [id, at] : by_value_) CTK_CHECK(put(id, adapted(id, parameters_[at].value)));
  for (const auto& [id, tensor] : statistics_) CTK_CHECK(put(id, tensor));
  for (const auto& [id, weight] : coded_) {
    const auto adapter = adapters_.find(id);
    const at::Tensor more = adapter == adapters_.end() ? at::Tensor() : adapter->second.difference();
    CTK_TRY(out.value(id).quantized, weight.quantized({}, more));
  }
  for (const auto& [id, at] : range_of_) {
    out.value(id).activation_quant->scale = std::max(parameters_[at].value.item().toFloat(), kLeastRange);
  }
  for (const auto& [id, norm] : norms_) {
    const Node& node = graph_.node(id);
    const at::Tensor factor = factor_of(norm).to(at::kDouble) / at::sqrt(norm.variance.to(at::kDouble) + kNormEpsilon);
    if (norm.is_coded) {
      CTK_TRY(out.value(node.inputs[1]).quantized, coded_.at(node.inputs[1]).quantized(factor));
    } else {
      const at::Tensor& w = parameters_[norm.weight].value;
      CTK_CHECK(put(node.inputs[1], (w.to(at::kDouble) * by_row(factor, w.dim())).to(at::kFloat)));
    }
    const at::Tensor bias =
        (parameters_[norm.offset].value.to(at::kDouble) - norm.mean.to(at::kDouble) * factor).to(at::kFloat);
    CTK_TRY(Tensor tensor, from_torch(bias));
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2].is_valid();
    const bool is_own = has_bias && graph_.value(node.inputs[2]).consumers.size() == 1;
    if (is_own) {
      out.value(node.inputs[2]).constant = std::move(tensor);
    } else {
      const std::string name = out.unique_name(out.address(id) + "_bias");
      out.set_input(id, 2, out.add_constant(name, std::move(tensor)));
    }
  }
  return out;
}

}  // namespace ctk::train
