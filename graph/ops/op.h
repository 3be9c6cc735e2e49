// What one operator's file tells about it: legal forms, shape rule, float evaluation, and how it behaves towards
// quantization and channels.
#pragma once

#include <span>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"

namespace ctk::graph {

// What inference knows of a value: always dtype and concrete shape; its contents when they are known before the run.
struct ValueInfo {
  DType dtype = DType::f32;
  Shape shape;
  std::optional<Tensor> constant;  // small integer tensors (shapes, axes, sizes) are followed through the graph
};

// One entry per node input; an omitted optional input has `present == false`.
struct InferInput {
  bool present = false;
  ValueInfo info;
};

enum class OpKind : std::uint8_t {
  other,
  layer,          // has a weight input that quantizers may code: Conv, ConvTranspose, Gemm, MatMul
  unary,          // one data input, output[i] = f(input[i]) in float: may run as a 256-entry table on codes
  binary,         // elementwise with broadcasting
  data_movement,  // output elements are input elements moved (or padding): quantization passes through unchanged
  pool,           // MaxPool passes codes through; averages requantize
};

struct OpRules {
  OpKind kind = OpKind::other;
  int min_inputs = 1;
  int max_inputs = 1;  // -1: any number
  // Output dtypes and shapes, and contents where they follow from known inputs. Must check every attribute and shape it
  // relies on, whatever a file may hold (negative, huge, missing). Errors: input, without the node's name (the caller
  // adds it). Node outputs that are omitted still get an entry.
  Result<std::vector<ValueInfo>> (*infer)(const Node& node, std::span<const InferInput> inputs) = nullptr;
  // Computes all outputs in float32 (or the integer / bool dtypes inference gave) into memory the caller has sized by
  // infer(). Inputs omitted have data == nullptr. Row-major, ONNX layout. Called only after infer() succeeded with
  // these shapes. Must not allocate (it runs in the executor's loop) and must not use threads; sums in a fixed order.
  Status (*evaluate)(const Node& node, std::span<const TensorView> inputs,
                     std::span<const MutableTensorView> outputs) = nullptr;
};

// Rules of a known operator; never called with Op::unknown.
const OpRules& rules_of(Op op);

#define CTK_OP(name) const OpRules& rules_##name();
#include "graph/ops.def"
#undef CTK_OP

}  // namespace ctk::graph
