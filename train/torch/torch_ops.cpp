#include "train/torch/torch_ops.h"

#include <array>

#include "core/printable.h"
#include "graph/ops/check.h"
#include "train/torch/tensors.h"

namespace ctk::train {
namespace {

using graph::Op;

float number(const OpCall& call, std::string_view name, float fallback) {
  return call.node.attributes.get_float(name, fallback);
}

template <at::Tensor (*f)(const at::Tensor&)>
at::Tensor unary(const OpCall& call) {
  return f(call.inputs[0]);
}

at::Tensor add(const OpCall& call) {
  return at::add(call.inputs[0], call.inputs[1]);
}
at::Tensor sub(const OpCall& call) {
  return at::sub(call.inputs[0], call.inputs[1]);
}
at::Tensor mul(const OpCall& call) {
  return at::mul(call.inputs[0], call.inputs[1]);
}
at::Tensor div(const OpCall& call) {
  if (call.inputs[0].is_floating_point()) return at::div(call.inputs[0], call.inputs[1]);
  return at::div(call.inputs[0], call.inputs[1], "trunc");
}
at::Tensor pow(const OpCall& call) {
  const at::Tensor& exponent = call.inputs[1];
  if (exponent.numel() == 1 && !exponent.requires_grad()) {
    const at::Tensor power = at::pow(call.inputs[0], exponent.item().toDouble());
    return exponent.dim() <= power.dim() ? power : power.expand(call.shape());
  }
  return at::pow(call.inputs[0], exponent.to(at::kFloat));
}
at::Tensor fold(const OpCall& call, at::Tensor (*f)(const at::Tensor&, const at::Tensor&)) {
  at::Tensor y = call.inputs[0];
  for (std::size_t i = 1; i < call.inputs.size(); ++i) y = f(y, call.inputs[i]);
  return y;
}
at::Tensor max(const OpCall& call) {
  return fold(call, at::maximum);
}
at::Tensor min(const OpCall& call) {
  return fold(call, at::minimum);
}
at::Tensor where(const OpCall& call) {
  return at::where(call.inputs[0], call.inputs[1], call.inputs[2]);
}

at::Tensor clip(const OpCall& call) {
  const bool has_low = call.has(1), has_high = call.has(2);
  if (!has_low && !has_high) return call.inputs[0];
  const auto bound = [&](std::size_t i) {
    return call.has(i) ? std::optional<at::Scalar>(call.inputs[i].item()) : std::nullopt;
  };
  return at::clamp(call.inputs[0], bound(1), bound(2));
}
at::Tensor elu(const OpCall& call) {
  return at::elu(call.inputs[0], number(call, "alpha", 1.0f));
}
at::Tensor leaky_relu(const OpCall& call) {
  return at::leaky_relu(call.inputs[0], number(call, "alpha", 0.01f));
}
at::Tensor p_relu(const OpCall& call) {
  const at::Tensor& x = call.inputs[0];
  return at::where(x.lt(0), x * call.inputs[1], x);
}
at::Tensor hard_sigmoid(const OpCall& call) {
  return at::clamp(call.inputs[0] * number(call, "alpha", 0.2f) + number(call, "beta", 0.5f), 0.0, 1.0);
}
at::Tensor gelu(const OpCall& call) {
  return at::gelu(call.inputs[0], call.node.attributes.get_string("approximate", "none"));
}
at::Tensor softmax(const OpCall& call) {
  return at::softmax(call.inputs[0], call.node.attributes.get_int("axis", -1));
}

at::Tensor identity(const OpCall& call) {
  return call.inputs[0];
}
at::Tensor cast(const OpCall& call) {
  const auto type = scalar_type_of(call.outputs[0]->dtype);
  if (type && at::isFloatingType(*type)) return call.inputs[0].to(*type);
  return run_undifferentiated(call)[0];  // a step has no slope; and to integers our own rule saturates
}
at::Tensor reshape(const OpCall& call) {
  return call.inputs[0].reshape(call.shape());
}
at::Tensor expand(const OpCall& call) {
  return call.inputs[0].expand(call.shape());
}
at::Tensor transpose(const OpCall& call) {
  std::vector<std::int64_t> order = call.node.attributes.get_ints("perm");
  if (order.empty()) {
    for (std::int64_t d = call.inputs[0].dim() - 1; d >= 0; --d) order.push_back(d);
  }
  return call.inputs[0].permute(order);
}
at::Tensor concat(const OpCall& call) {
  return at::cat(std::vector<at::Tensor>(call.inputs.begin(), call.inputs.end()),
                 call.node.attributes.get_int("axis", 0));
}

at::Tensor reduce(const OpCall& call, bool is_mean) {
  const at::Tensor& x = call.inputs[0];
  std::vector<std::int64_t> axes = call.ints(1);
  if (axes.empty()) {
    if (call.node.attributes.get_int("noop_with_empty_axes", 0) != 0) return x;
    for (std::int64_t d = 0; d < x.dim(); ++d) axes.push_back(d);
  }
  const bool keeps = call.node.attributes.get_int("keepdims", 1) != 0;
  if (axes.empty()) return x;  // a scalar
  return is_mean ? at::mean(x, axes, keeps) : at::sum(x, axes, keeps).to(x.scalar_type());
}
at::Tensor reduce_mean(const OpCall& call) {
  return reduce(call, true);
}
at::Tensor reduce_sum(const OpCall& call) {
  return reduce(call, false);
}

constexpr const char* kCodes = "rounding to codes has no slope";
constexpr const char* kShapes = "its result depends on shapes or integers only";

// In the order of ops.def.
const OpRow kRows[] = {
    {Op::Abs, unary<at::abs>, nullptr, ""},
    {Op::Add, add, nullptr, ""},
    {Op::Attention, nullptr, attention, ""},
    {Op::AveragePool, average_pool, nullptr, ""},
    {Op::BatchNormalization, frozen_batch_norm, nullptr, ""},
    {Op::Cast, cast, nullptr, ""},
    {Op::Clip, clip, nullptr, ""},
    {Op::Concat, concat, nullptr, ""},
    {Op::Constant, nullptr, nullptr, kShapes},
    {Op::ConstantOfShape, nullptr, nullptr, kShapes},
    {Op::Conv, conv, nullptr, ""},
    {Op::ConvTranspose, conv_transpose, nullptr, ""},
    {Op::DequantizeLinear, nullptr, nullptr, kCodes},
    {Op::Div, div, nullptr, ""},
    {Op::Dropout, identity, nullptr, ""},
    {Op::Elu, elu, nullptr, ""},
    {Op::Equal, nullptr, nullptr, "a comparison has no slope"},
    {Op::Erf, unary<at::erf>, nullptr, ""},
    {Op::Exp, unary<at::exp>, nullptr, ""},
    {Op::Expand, expand, nullptr, ""},
    {Op::Flatten, reshape, nullptr, ""},
    {Op::Gather, gather, nullptr, ""},
    {Op::Gelu, gelu, nullptr, ""},
    {Op::Gemm, gemm, nullptr, ""},
    {Op::GlobalAveragePool, global_average_pool, nullptr, ""},
    {Op::HardSigmoid, hard_sigmoid, nullptr, ""},
    {Op::HardSwish, unary<at::hardswish>, nullptr, ""},
    {Op::Identity, identity, nullptr, ""},
    {Op::LayerNormalization, nullptr, layer_norm, ""},
    {Op::LeakyRelu, leaky_relu, nullptr, ""},
    {Op::MatMul, mat_mul, nullptr, ""},
    {Op::Max, max, nullptr, ""},
    {Op::MaxPool, max_pool, nullptr, ""},
    {Op::Min, min, nullptr, ""},
    {Op::Mul, mul, nullptr, ""},
    {Op::Neg, unary<at::neg>, nullptr, ""},
    {Op::PRelu, p_relu, nullptr, ""},
    {Op::Pad, pad, nullptr, ""},
    {Op::Pow, pow, nullptr, ""},
    {Op::QuantizeLinear, nullptr, nullptr, kCodes},
    {Op::RMSNormalization, rms_norm, nullptr, ""},
    {Op::Range, nullptr, nullptr, kShapes},
    {Op::ReduceMean, reduce_mean, nullptr, ""},
    {Op::ReduceSum, reduce_sum, nullptr, ""},
    {Op::Relu, unary<at::relu>, nullptr, ""},
    {Op::Reshape, reshape, nullptr, ""},
    {Op::Resize, resize, nullptr, ""},
    {Op::RotaryEmbedding, rotary_embedding, nullptr, ""},
    {Op::Shape, nullptr, nullptr, kShapes},
    {Op::Sigmoid, unary<at::sigmoid>, nullptr, ""},
    {Op::Slice, slice, nullptr, ""},
    {Op::Softmax, softmax, nullptr, ""},
    {Op::Split, nullptr, split, ""},
    {Op::Sqrt, unary<at::sqrt>, nullptr, ""},
    {Op::Squeeze, reshape, nullptr, ""},
    {Op::Sub, sub, nullptr, ""},
    {Op::Tanh, unary<at::tanh>, nullptr, ""},
    {Op::Transpose, transpose, nullptr, ""},
    {Op::Unsqueeze, reshape, nullptr, ""},
    {Op::Where, where, nullptr, ""},
};

// A new row of ops.def without one here does not compile.
constexpr std::size_t kOps = 0
#define CTK_OP(name) +1
#include "graph/ops.def"
#undef CTK_OP
    ;
static_assert(std::size(kRows) == kOps);

}  // namespace

std::vector<std::int64_t> OpCall::ints(std::size_t i) const {
  if (i >= known.size() || known[i] == nullptr || !known[i]->constant) return {};
  auto values = to_i64(*known[i]->constant);
  return values ? *values : std::vector<std::int64_t>{};
}

const OpRow& torch_row(Op op) {
  return kRows[static_cast<std::size_t>(op) - 1];
}

std::span<const OpSupport> torch_support() {
  static const std::vector<OpSupport> support = [] {
    std::vector<OpSupport> rows;
    for (const OpRow& row : kRows) rows.push_back({row.op, row.one != nullptr || row.all != nullptr, row.reason});
    return rows;
  }();
  return support;
}

Outputs run_undifferentiated(const OpCall& call) {
  std::vector<at::Tensor> dense;
  std::vector<TensorView> views;
  for (const at::Tensor& input : call.inputs) {
    dense.push_back(input.defined() ? input.detach().contiguous() : input);
    views.push_back(input.defined() ? view_of(dense.back()) : TensorView{});
  }
  Outputs outputs;
  std::vector<MutableTensorView> targets;
  for (const graph::ValueInfo* info : call.outputs) {
    const auto type = info == nullptr ? std::nullopt : scalar_type_of(info->dtype);
    TORCH_CHECK(info == nullptr || type, std::string(name_of(info->dtype)), " has no type in LibTorch");
    outputs.push_back(info == nullptr ? at::Tensor() : at::zeros(info->shape, *type));
    targets.push_back(info == nullptr ? MutableTensorView{}
                                      : MutableTensorView{info->dtype, info->shape, outputs.back().mutable_data_ptr()});
  }
  const Status status = graph::rules_of(call.node.op).evaluate(call.node, views, targets);
  TORCH_CHECK(status.has_value(), status.error().message);
  return outputs;
}

}  // namespace ctk::train
