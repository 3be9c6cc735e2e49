// Gated steps: Mul(Mul(x, Sigmoid(x)), up), SwiGLU, in one pass over its operands, bit for bit what its three nodes
// give.
#include "core/parallel.h"
#include "core/sigmoid.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

constexpr std::size_t kGrain = 1024;

class GatedStep final : public Step {
 public:
  std::size_t count = 0;

  Status run(const RunContext& context) override {
    const float* x = context.at<const float>(reads[0]);
    const float* up = context.at<const float>(reads[1]);
    float* y = context.at<float>(writes[0]);
    parallel_for(count, kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) y[i] = x[i] * sigmoid(x[i]) * up[i];
    });
    return {};
  }
};

struct Gate {
  NodeId sigmoid, inner, outer;
  ValueId x, up;
};

// The pattern whose Sigmoid is `id`; sigmoid invalid where there is none.
Gate gate_at(const PlanBuilder& builder, NodeId id) {
  const Graph& graph = builder.graph();
  const Node& sigmoid = graph.node(id);
  const ValueId x = sigmoid.inputs[0], s = sigmoid.outputs[0];
  const auto reader = [&](ValueId value) -> NodeId {
    if (!builder.is_internal(value) || builder.has_note(value)) return {};
    const NodeId node = graph.value(value).consumers[0];
    return graph.node(node).op == Op::Mul && !graph.node(node).absorbed_by.is_valid() ? node : NodeId{};
  };
  const auto other = [&](NodeId mul, ValueId one) {
    const auto& operands = graph.node(mul).inputs;
    return operands[0] == one ? operands[1] : operands[0];
  };
  const NodeId inner = reader(s);
  if (!inner.is_valid() || other(inner, s) != x || builder.has_note(x)) return {};
  const ValueId product = graph.node(inner).outputs[0];
  const NodeId outer = reader(product);
  if (!outer.is_valid()) return {};
  const ValueId up = other(outer, product), y = graph.node(outer).outputs[0];
  const auto& readers = graph.value(y).consumers;
  const bool absorbs = readers.size() == 1 && graph.node(readers[0]).absorbed_by == outer;
  const bool is_plain = up != product && !builder.has_note(up) && !builder.has_note(y) && !absorbs;
  if (!is_plain || builder.info(x).dtype != DType::f32 || builder.shape(up) != builder.shape(x)) return {};
  return {id, inner, outer, x, up};
}

// The same, asked by its last node.
Gate gate_ending(const PlanBuilder& builder, NodeId id) {
  const Graph& graph = builder.graph();
  for (ValueId product : graph.node(id).inputs) {
    const NodeId inner = graph.value(product).producer;
    if (!inner.is_valid() || graph.node(inner).op != Op::Mul) continue;
    for (ValueId factor : graph.node(inner).inputs) {
      const NodeId sigmoid = graph.value(factor).producer;
      if (!sigmoid.is_valid() || graph.node(sigmoid).op != Op::Sigmoid) continue;
      const Gate gate = gate_at(builder, sigmoid);
      if (gate.sigmoid.is_valid() && gate.outer == id) return gate;
    }
  }
  return {};
}

}  // namespace

Result<bool> make_gated_steps(PlanBuilder& builder, NodeId id) {
  const Op op = builder.graph().node(id).op;
  if (op == Op::Sigmoid) {
    const Gate gate = gate_at(builder, id);
    if (gate.sigmoid.is_valid()) builder.mark_done(gate.inner);
    return gate.sigmoid.is_valid();  // nothing yet: `up` may come later
  }
  if (op != Op::Mul) return false;
  const Gate gate = gate_ending(builder, id);
  if (!gate.sigmoid.is_valid()) return false;
  CTK_TRY(const int x, builder.need(gate.x, Form::native, Layout::plain));
  CTK_TRY(const int up, builder.need(gate.up, Form::native, Layout::plain));
  auto step = std::make_unique<GatedStep>();
  step->count = elements(builder.shape(gate.x));
  step->label = "gated_f32";
  step->reads = {x, up};
  step->writes = {builder.define(builder.graph().node(id).outputs[0], Form::native, Layout::plain)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime
