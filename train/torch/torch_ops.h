// Operators as differentiable ATen calls: one row an operator of ops.def.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/ops/op.h"
#include "train/trainer.h"

namespace ctk::train {

// One node with what inference found for these input shapes: every attribute and shape has been checked by it.
struct OpCall {
  const graph::Node& node;
  std::span<const at::Tensor> inputs;                // undefined where omitted
  std::span<const graph::ValueInfo* const> known;    // of each input; null where omitted
  std::span<const graph::ValueInfo* const> outputs;  // null where omitted
  at::Tensor* probabilities = nullptr;               // of Attention, [batch, heads, queries, keys], if asked for

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i].defined(); }
  const Shape& shape(std::size_t i = 0) const { return outputs[i]->shape; }
  // Contents of a control input (axes, pads), which inference has followed; empty when omitted.
  std::vector<std::int64_t> ints(std::size_t i) const;
};
using Outputs = std::vector<at::Tensor>;

// Errors of ATen are exceptions; whoever runs a table's row catches them.
struct OpRow {
  graph::Op op;
  at::Tensor (*one)(const OpCall& call);  // of operators with one output that is read
  Outputs (*all)(const OpCall& call);     // of others
  const char* reason;                     // why there is neither: it then runs by run_undifferentiated()
};
const OpRow& torch_row(graph::Op op);
std::span<const OpSupport> torch_support();

// By graph/ops itself, on detached inputs: exact, and without a gradient.
Outputs run_undifferentiated(const OpCall& call);
// An operator that only moves elements of input 0, by the places graph/ops puts element numbers at.
at::Tensor move_by_rule(const OpCall& call);

// torch_layers.cpp
at::Tensor conv(const OpCall& call);
at::Tensor conv_transpose(const OpCall& call);
at::Tensor gemm(const OpCall& call);
at::Tensor mat_mul(const OpCall& call);
at::Tensor max_pool(const OpCall& call);
at::Tensor average_pool(const OpCall& call);
at::Tensor global_average_pool(const OpCall& call);
at::Tensor frozen_batch_norm(const OpCall& call);
Outputs layer_norm(const OpCall& call);
at::Tensor rms_norm(const OpCall& call);
// torch_attention.cpp
Outputs attention(const OpCall& call);
at::Tensor rotary_embedding(const OpCall& call);
// torch_movement.cpp
at::Tensor gather(const OpCall& call);
at::Tensor slice(const OpCall& call);
at::Tensor pad(const OpCall& call);
at::Tensor resize(const OpCall& call);
Outputs split(const OpCall& call);

}  // namespace ctk::train
