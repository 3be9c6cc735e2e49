// Gradient checkpoints: of a range of nodes only what goes in and what comes out is kept.
// Source: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016. Differs: ranges are those between places to
// which the network narrows, whatever their length.
// Cost: one more way forth of everything but the last range. Bits: the same kernels run on the same numbers, and what a
// parameter gathers from several ranges is added up by ATen's engine in the order it would be without.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <set>

#include "graph/blocks.h"
#include "train/torch/torch_graph.h"

namespace ctk::train {

using graph::ValueId;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Status TorchGraph::checkpoint_blocks() {
  checkpoints_.clear();
  const std::vector<graph::Cut> cuts = graph::cuts_of(graph_);
  const auto add = [&](std::size_t place) {
    if (place > 0 && place < graph_.order().size() && (checkpoints_.empty() || checkpoints_.back() < place))
      checkpoints_.push_back(place);
  };
  // Blocks begin where a value branches; behind the last one the network goes on without branches.
  std::size_t next = cuts.size();
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    if (graph_.value(cuts[i].value).consumers.size() < 2) continue;
    add(cuts[i].place);
    next = i + 1;
  }
  if (next < cuts.size()) add(cuts[next].place);
  if (checkpoints_.size() >= 2) return {};
  checkpoints_.clear();
  for (const graph::Cut& cut : cuts) add(cut.place);
  if (checkpoints_.size() >= 2) return {};
  return input_error("checkpoint_blocks: expected a network with two places at least between blocks, found " +
                     std::to_string(checkpoints_.size()) + ". Set it to false");
}

// In:  values the range reads, then the parameters it reads.   Out: values that later nodes read.
struct TorchGraph::Checkpointed : torch::autograd::Function<Checkpointed> {
  struct Range {
    TorchGraph* owner;
    const Plan* plan;
    std::size_t first, last;
    bool is_training;
    std::vector<ValueId> reads, gives;
    std::vector<at::Tensor> parameters;

    variable_list run(at::TensorList inputs) const {
      std::vector<at::Tensor> values(owner->graph_.value_capacity());
      for (std::size_t i = 0; i < reads.size(); ++i) values[reads[i].index] = inputs[i];
      const Status status = owner->run_range(*plan, values, first, last, is_training);
      TORCH_CHECK(status.has_value(), status.error().message);
      variable_list outputs;
      for (ValueId id : gives) outputs.push_back(values[id.index]);
      return outputs;
    }
  };

  struct Held : torch::CustomClassHolder {
    explicit Held(std::shared_ptr<Range> held) : range(std::move(held)) {}
    std::shared_ptr<Range> range;
  };

  static variable_list forward(AutogradContext* context, at::TensorList inputs, const std::shared_ptr<Range>& range) {
    context->save_for_backward({inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(range->reads.size())});
    context->saved_data["range"] = c10::IValue::make_capsule(c10::make_intrusive<Held>(range));
    return range->run(inputs);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto held = context->saved_data["range"].toCapsule();
    const auto range = static_cast<const Held*>(held.get())->range;
    variable_list inputs, wanted;
    std::vector<std::size_t> places;  // of `wanted` among the inputs
    for (const at::Tensor& saved : context->get_saved_variables()) {
      at::Tensor input = saved.defined() ? saved.detach() : saved;
      if (context->needs_input_grad(inputs.size()) && input.defined() && input.is_floating_point()) {
        input.requires_grad_(true);
        wanted.push_back(input);
        places.push_back(inputs.size());
      }
      inputs.push_back(std::move(input));
    }
    for (std::size_t i = 0; i < range->parameters.size(); ++i) {
      wanted.push_back(range->parameters[i]);
      places.push_back(inputs.size() + i);
    }
    const at::AutoGradMode differentiates(true);
    const variable_list outputs = range->run(inputs);
    variable_list from, by;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!gradients[i].defined() || !outputs[i].requires_grad()) continue;
      from.push_back(outputs[i]);
      by.push_back(gradients[i]);
    }
    variable_list all(inputs.size() + range->parameters.size() + 1);
    if (from.empty() || wanted.empty()) return all;
    const variable_list found = torch::autograd::grad(from, wanted, by, false, false, true);
    for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = found[i];
    return all;
  }
};

Status TorchGraph::run_checkpointed(const Plan& plan, std::vector<at::Tensor>& values, std::size_t first,
                                    std::size_t last, bool is_training) {
  const auto range =
      std::make_shared<Checkpointed::Range>(Checkpointed::Range{this, &plan, first, last, is_training, {}, {}, {}});
  std::set<ValueId> made, read;
  std::set<std::size_t> used;
  for (std::size_t at = first; at < last; ++at) {
    const graph::Node& node = graph_.node(graph_.order()[at]);
    for (ValueId input : node.inputs) {
      if (!input.is_valid() || made.contains(input) || !read.insert(input).second) continue;
      if (const auto parameter = by_value_.find(input); parameter != by_value_.end()) used.insert(parameter->second);
      if (values[input.index].defined()) range->reads.push_back(input);
    }
    for (ValueId output : node.outputs) {
      if (output.is_valid()) made.insert(output);
    }
  }
  std::set<ValueId> later(graph_.outputs().begin(), graph_.outputs().end());
  for (std::size_t at = last; at < graph_.order().size(); ++at) {
    for (ValueId input : graph_.node(graph_.order()[at]).inputs) later.insert(input);
  }
  for (ValueId id : made) {
    if (later.contains(id)) range->gives.push_back(id);
  }
  // Scales, roundings and low-rank differences hang on parameters of other names.
  const bool reads_any = !coded_.empty() || !adapters_.empty() || !range_of_.empty() || !norms_.empty();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if ((reads_any || used.contains(i)) && parameters_[i].value.requires_grad())
      range->parameters.push_back(parameters_[i].value);
  }
  variable_list inputs;
  for (ValueId id : range->reads) inputs.push_back(values[id.index]);
  inputs.insert(inputs.end(), range->parameters.begin(), range->parameters.end());
  try {
    const variable_list outputs = Checkpointed::apply(at::TensorList(inputs), range);
    for (std::size_t i = 0; i < outputs.size(); ++i) values[range->gives[i].index] = outputs[i];
  } catch (const c10::Error& error) {
    return input_error(error.what_without_backtrace());
  }
  for (std::size_t at = first; at < last; ++at) {
    for (ValueId done : plan.last_uses[at]) values[done.index] = at::Tensor();
  }
  return {};
}

}  // namespace ctk::train
