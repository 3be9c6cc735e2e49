#include "graph/coupling/rules.h"

#include <array>

namespace ctk::graph {
namespace {

constexpr std::array kRules{
    CouplingRule{Op::Abs, tie_first, nullptr},
    CouplingRule{Op::Add, tie_elementwise, nullptr},
    CouplingRule{Op::Attention, tie_attention, refit_attention},
    CouplingRule{Op::AveragePool, tie_pool, nullptr},
    CouplingRule{Op::BatchNormalization, tie_batch_normalization, nullptr},
    CouplingRule{Op::Cast, tie_first, nullptr},
    CouplingRule{Op::Clip, tie_first, nullptr},
    CouplingRule{Op::Concat, tie_concat, nullptr},
    CouplingRule{Op::Constant, tie_sizes, nullptr},
    CouplingRule{Op::ConstantOfShape, tie_sizes, nullptr},
    CouplingRule{Op::Conv, tie_conv, refit_conv},
    CouplingRule{Op::ConvTranspose, tie_conv_transpose, refit_conv},
    CouplingRule{Op::DequantizeLinear, nullptr, nullptr},
    CouplingRule{Op::Div, tie_elementwise, nullptr},
    CouplingRule{Op::Dropout, tie_first, nullptr},
    CouplingRule{Op::Elu, tie_first, nullptr},
    CouplingRule{Op::Equal, tie_elementwise, nullptr},
    CouplingRule{Op::Erf, tie_first, nullptr},
    CouplingRule{Op::Exp, tie_first, nullptr},
    CouplingRule{Op::Expand, tie_expand, refit_target_shape},
    CouplingRule{Op::Flatten, tie_reshape, nullptr},
    CouplingRule{Op::Gather, tie_gather, nullptr},
    CouplingRule{Op::Gelu, tie_first, nullptr},
    CouplingRule{Op::Gemm, tie_gemm, nullptr},
    CouplingRule{Op::GlobalAveragePool, tie_pool, nullptr},
    CouplingRule{Op::HardSigmoid, tie_first, nullptr},
    CouplingRule{Op::HardSwish, tie_first, nullptr},
    CouplingRule{Op::Identity, tie_first, nullptr},
    CouplingRule{Op::LayerNormalization, tie_layer_normalization, nullptr},
    CouplingRule{Op::LeakyRelu, tie_first, nullptr},
    CouplingRule{Op::MatMul, tie_mat_mul, nullptr},
    CouplingRule{Op::Max, tie_elementwise, nullptr},
    CouplingRule{Op::MaxPool, tie_pool, nullptr},
    CouplingRule{Op::Min, tie_elementwise, nullptr},
    CouplingRule{Op::Mul, tie_elementwise, nullptr},
    CouplingRule{Op::Neg, tie_first, nullptr},
    CouplingRule{Op::PRelu, tie_elementwise, nullptr},
    CouplingRule{Op::Pad, tie_pad, refit_pad},
    CouplingRule{Op::Pow, tie_elementwise, nullptr},
    CouplingRule{Op::QuantizeLinear, nullptr, nullptr},
    CouplingRule{Op::RMSNormalization, tie_layer_normalization, nullptr},
    CouplingRule{Op::Range, tie_sizes, nullptr},
    CouplingRule{Op::ReduceMean, tie_reduce, nullptr},
    CouplingRule{Op::ReduceSum, tie_reduce, nullptr},
    CouplingRule{Op::Relu, tie_first, nullptr},
    CouplingRule{Op::Reshape, tie_reshape, refit_target_shape},
    CouplingRule{Op::Resize, tie_resize, refit_resize},
    CouplingRule{Op::RotaryEmbedding, tie_rotary, refit_rotary},
    CouplingRule{Op::Shape, tie_sizes, nullptr},
    CouplingRule{Op::Sigmoid, tie_first, nullptr},
    CouplingRule{Op::Slice, tie_slice, refit_slice},
    CouplingRule{Op::Softmax, tie_softmax, nullptr},
    CouplingRule{Op::Split, tie_split, refit_split},
    CouplingRule{Op::Sqrt, tie_first, nullptr},
    CouplingRule{Op::Squeeze, tie_squeeze, nullptr},
    CouplingRule{Op::Sub, tie_elementwise, nullptr},
    CouplingRule{Op::Tanh, tie_first, nullptr},
    CouplingRule{Op::Transpose, tie_transpose, nullptr},
    CouplingRule{Op::Unsqueeze, tie_unsqueeze, nullptr},
    CouplingRule{Op::Where, tie_elementwise, nullptr},
};

// Rows stand where the operator's number says: Op::unknown is 0.
constexpr bool is_complete() {
  std::size_t at = 0;
#define CTK_OP(name) \
  if (at >= kRules.size() || kRules[at++].op != Op::name) return false;
#include "graph/ops.def"
#undef CTK_OP
  return at == kRules.size();
}
static_assert(is_complete(), "a row for every operator of ops.def, in its order");

}  // namespace

const CouplingRule& coupling_rule(Op op) {
  return kRules[static_cast<std::size_t>(op) - 1];
}

}  // namespace ctk::graph
