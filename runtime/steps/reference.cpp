// The general step: any operator by its own float evaluation (graph/ops), in plain layout. Values with notes are
// dequantized before and quantized after, so the numbers are those of the exported Q/DQ graph.
#include "graph/ops/op.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::NodeId;
using graph::ValueId;

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

Result<bool> make_reference_steps(PlanBuilder& builder, NodeId id) {
  const Node& node = builder.graph().node(id);
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
