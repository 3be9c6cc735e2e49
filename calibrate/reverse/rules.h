// How a gradient goes back through one operator: the form of a rule, and their table.
#pragma once

#include <span>

#include "core/tensor.h"
#include "graph/graph.h"

namespace ctk::calibrate {

// One node on its way back. Views without data: omitted, not kept, or not wanted. Everything is in ONNX layout.
struct ReverseCall {
  const graph::Node& node;
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  std::span<const TensorView> output_gradients;        // without data: zero
  std::span<const MutableTensorView> input_gradients;  // to be added to; two of them may be one and the same
};

// What a rule reads besides constants and integers: of a product, each operand's gradient reads the other one.
enum class Reads { nothing, inputs, other_inputs, output };

struct ReverseRow {
  graph::Op op;
  Reads reads;
  Status (*run)(const ReverseCall& call);
};

// The table, by name of operator.
std::span<const ReverseRow> reverse_rows();
const ReverseRow* find_reverse_row(graph::Op op);

// One family a file.
Status reverse_unary(const ReverseCall& call);
Status reverse_binary(const ReverseCall& call);
Status reverse_gemm(const ReverseCall& call);
Status reverse_mat_mul(const ReverseCall& call);
Status reverse_conv(const ReverseCall& call);
Status reverse_softmax(const ReverseCall& call);
Status reverse_normalization(const ReverseCall& call);
Status reverse_batch_normalization(const ReverseCall& call);
Status reverse_rotary_embedding(const ReverseCall& call);
Status reverse_attention(const ReverseCall& call);
Status reverse_max_pool(const ReverseCall& call);
Status reverse_average_pool(const ReverseCall& call);
Status reverse_mean(const ReverseCall& call);
Status reverse_reinterpretation(const ReverseCall& call);
Status reverse_movement(const ReverseCall& call);

// Shared by rules: `to` += `from` summed over the dimensions along which `to` was broadcast.
void add_summed(const TensorView& from, const MutableTensorView& to);
// An input whose gradient no rule gives: a bias or scale that is no constant.
Status expect_not_wanted(const ReverseCall& call, std::size_t input, const char* name);

}  // namespace ctk::calibrate
