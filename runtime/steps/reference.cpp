// The general step: any operator by its own float evaluation (graph/ops), in plain layout. Values with notes are
// dequantized before and quantized after, so the numbers are those of the exported Q/DQ graph. Functions of single
// elements are split over threads.
#include <algorithm>

#include "core/parallel.h"
#include "graph/ops/op.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr std::size_t kPartElements = 8192;

// A function of single elements, part by part. Parts are views made beforehand: running allocates nothing.
class UnaryStep final : public Step {
 public:
  struct Part {
    TensorView input;  // data filled in by run(), as the output's
    MutableTensorView output;
    Status status;
  };
  const Node* node_data = nullptr;
  std::vector<Part> parts;  // of kPartElements, the last of what remains

  Status run(const RunContext& context) override {
    const auto* x = context.at<const std::byte>(reads[0]);
    auto* y = context.at<std::byte>(writes[0]);
    const auto evaluate = graph::rules_of(node_data->op).evaluate;
    parallel_for(parts.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        Part& part = parts[i];
        part.input.data = x + byte_size(part.input.dtype, i * kPartElements);
        part.output.data = y + byte_size(part.output.dtype, i * kPartElements);
        part.status = evaluate(*node_data, std::span(&part.input, 1), std::span(&part.output, 1));
      }
    });
    for (const Part& part : parts) CTK_CHECK(part.status);
    return {};
  }
};

class ReferenceStep final : public Step {
 public:
  const Node* node_data = nullptr;
  std::vector<TensorView> inputs;  // data filled in per run where the input is present
  std::vector<int> input_slots;    // -1: omitted
  std::vector<MutableTensorView> outputs;

  Status run(const RunContext& context) override {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].data = input_slots[i] < 0 ? nullptr : context.slots[input_slots[i]];
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].data = context.slots[writes[i]];
    return graph::rules_of(node_data->op).evaluate(*node_data, inputs, outputs);
  }
};

}  // namespace

namespace {

// Adds the step of a node of one input and one output that are alike.
Result<bool> make_unary_step(PlanBuilder& builder, NodeId id) {
  const Node& node = builder.graph().node(id);
  auto step = std::make_unique<UnaryStep>();
  step->node_data = &node;
  step->label = "reference_" + node.op_type;
  const std::size_t count = elements(builder.shape(node.inputs[0]));
  for (std::size_t at = 0; at < count; at += kPartElements) {
    const Shape shape{static_cast<std::int64_t>(std::min(kPartElements, count - at))};
    step->parts.push_back({{builder.info(node.inputs[0]).dtype, shape, nullptr},
                           {builder.info(node.outputs[0]).dtype, shape, nullptr},
                           {}});
  }
  CTK_TRY(const int slot, builder.need(node.inputs[0], Form::native, Layout::plain));
  step->reads = {slot};
  step->writes = {builder.define(node.outputs[0], Form::native, Layout::plain)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace

Result<bool> make_reference_steps(PlanBuilder& builder, NodeId id) {
  const Node& node = builder.graph().node(id);
  if (graph::rules_of(node.op).kind == graph::OpKind::unary && node.inputs.size() == 1 && node.outputs.size() == 1) {
    return make_unary_step(builder, id);
  }
  auto step = std::make_unique<ReferenceStep>();
  step->node_data = &node;
  step->label = "reference_" + node.op_type;
  for (ValueId input : node.inputs) {
    if (!input.is_valid()) {
      step->inputs.push_back({});
      step->input_slots.push_back(-1);
      continue;
    }
    CTK_TRY(const int slot, builder.need(input, Form::native, Layout::plain));
    step->inputs.push_back({builder.info(input).dtype, builder.shape(input), nullptr});
    step->input_slots.push_back(slot);
    step->reads.push_back(slot);
  }
  for (ValueId output : node.outputs) {
    if (!output.is_valid()) {
      return internal_error("an omitted output in the middle of the list cannot be computed");
    }
    step->writes.push_back(builder.define(output, Form::native, Layout::plain));
    step->outputs.push_back({builder.info(output).dtype, builder.shape(output), nullptr});
  }
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime
