#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/printable.h"
#include "train/torch/tensors.h"
#include "train/torch/torch_graph.h"

namespace ctk::train {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

bool is_product(Op op) {
  return op == Op::Conv || op == Op::ConvTranspose || op == Op::Gemm || op == Op::MatMul;
}

std::string where(const Graph& graph, NodeId id) {
  return "node \"" + printable(graph.address(id)) + "\" (" + graph.node(id).op_type + ")";
}

}  // namespace

Outputs TorchGraph::run_node(const Node& node, NodeId id, const Plan& plan, std::span<const at::Tensor> inputs,
                             bool is_training) {
  std::vector<const graph::ValueInfo*> known, outputs;
  for (ValueId input : node.inputs) known.push_back(input.is_valid() ? &plan.infos[input.index].info : nullptr);
  for (ValueId output : node.outputs) outputs.push_back(output.is_valid() ? &plan.infos[output.index].info : nullptr);
  probabilities_ = at::Tensor();
  const bool is_watched = watches_probabilities_ && std::ranges::count(watch_, node.outputs[0]) != 0;
  const OpCall call{node, inputs, known, outputs, is_watched ? &probabilities_ : nullptr};
  const auto has_statistics = [&] {
    return statistics_.contains(node.inputs[3]) && statistics_.contains(node.inputs[4]);
  };
  if (is_training && node.op == Op::BatchNormalization && has_statistics()) return {trained_batch_norm(node, inputs)};
  const OpRow& row = torch_row(node.op);
  const bool reads_more = std::ranges::any_of(node.outputs.begin() + 1, node.outputs.end(), [&](ValueId output) {
    return output.is_valid() && (!graph_.value(output).consumers.empty() || graph_.is_output(output));
  });
  Outputs results;
  if (row.all != nullptr) {
    results = row.all(call);
  } else if (row.one != nullptr) {
    if (reads_more) results = run_undifferentiated(call);
    results.resize(std::max<std::size_t>(results.size(), 1));
    results[0] = row.one(call);
  } else {
    results = run_undifferentiated(call);
  }
  if (moments_ != nullptr && can_renew(id)) add_moments((*moments_)[id], results[0]);
  if (const auto norm = norms_.find(id); norm != norms_.end()) {
    results[0] = normalized(norm->second, results[0], is_training);
  }
  return results;
}

Result<Outputs> TorchGraph::run(std::span<const at::Tensor> inputs, bool is_training) {
  CTK_TRY(const Plan* plan, plan_for(inputs));
  std::vector<at::Tensor> values(graph_.value_capacity());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph_.inputs()[i].index] = inputs[i];
  watched_.assign(watch_.size(), {});
  for (ValueId id : graph_.inputs()) values[id.index] = rounded(id, values[id.index]);
  std::size_t first = 0;
  if (at::GradMode::is_enabled()) {
    for (std::size_t place : checkpoints_) {
      CTK_CHECK(run_checkpointed(*plan, values, first, place, is_training));
      first = place;
    }
  }
  CTK_CHECK(run_range(*plan, values, first, graph_.order().size(), is_training));
  Outputs outputs;
  for (ValueId id : graph_.outputs()) outputs.push_back(value_of(id, values));
  return outputs;
}

at::Tensor TorchGraph::value_of(ValueId id, const std::vector<at::Tensor>& values) const {
  if (!id.is_valid()) return {};
  const at::Tensor constant = constant_of(id);
  return constant.defined() ? constant : values[id.index];
}

Status TorchGraph::run_range(const Plan& plan, std::vector<at::Tensor>& values, std::size_t first, std::size_t last,
                             bool is_training) {
  const auto keep = [&](ValueId id) {
    for (std::size_t i = 0; i < watch_.size(); ++i) {
      if (watch_[i] == id) watched_[i] = probabilities_.defined() ? probabilities_ : values[id.index];
    }
  };
  const auto& order = graph_.order();
  for (std::size_t at = first; at < last; ++at) {
    const Node& node = graph_.node(order[at]);
    const bool is_known = std::ranges::all_of(
        node.outputs, [&](ValueId output) { return !output.is_valid() || plan.constants.contains(output); });
    if (is_known) {
      for (ValueId output : node.outputs) {
        if (output.is_valid()) values[output.index] = plan.constants.at(output);
      }
      continue;
    }
    std::vector<at::Tensor> node_inputs;
    for (ValueId input : node.inputs) {
      node_inputs.push_back(value_of(input, values));
      if (!input.is_valid() || node_inputs.back().defined()) continue;
      const graph::ValueInfo& info = plan.infos[input.index].info;
      if (info.constant && scalar_type_of(info.dtype)) {
        node_inputs.back() = to_torch(*info.constant);
        continue;
      }
      return input_error(where(graph_, order[at]) + ": input \"" + printable(graph_.value(input).name) +
                         "\": " + std::string(name_of(info.dtype)) + " has no type in LibTorch");
    }
    if (norms_.contains(order[at]) && node_inputs.size() > 2) node_inputs[2] = at::Tensor();  // in the norm's offset
    const bool is_narrow = autocasts_ && is_product(node.op);
    if (is_narrow) {
      for (at::Tensor& input : node_inputs) {
        if (input.defined() && input.scalar_type() == at::kFloat) input = input.to(at::kBFloat16);
      }
    }
    try {
      Outputs results = run_node(node, order[at], plan, node_inputs, is_training);
      for (std::size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
        if (!node.outputs[i].is_valid()) continue;
        if (is_narrow) results[i] = results[i].to(at::kFloat);
        values[node.outputs[i].index] = rounded(node.outputs[i], results[i]);
        keep(node.outputs[i]);
      }
    } catch (const c10::Error& error) {
      return input_error(where(graph_, order[at]) + ": " + error.what_without_backtrace());
    }
    for (ValueId done : plan.last_uses[at]) values[done.index] = at::Tensor();
  }
  return {};
}

}  // namespace ctk::train
