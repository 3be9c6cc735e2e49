#include "calibrate/reverse/rules.h"

namespace ctk::calibrate {
namespace {

using graph::Op;

const ReverseRow kRows[] = {
    {Op::Abs, Reads::inputs, reverse_unary},
    {Op::Add, Reads::nothing, reverse_binary},
    {Op::Attention, Reads::inputs, reverse_attention},
    {Op::AveragePool, Reads::nothing, reverse_average_pool},
    {Op::BatchNormalization, Reads::nothing, reverse_batch_normalization},
    {Op::Clip, Reads::inputs, reverse_unary},
    {Op::Concat, Reads::nothing, reverse_movement},
    {Op::Conv, Reads::nothing, reverse_conv},
    {Op::Div, Reads::inputs, reverse_binary},
    {Op::Dropout, Reads::nothing, reverse_reinterpretation},
    {Op::Elu, Reads::inputs, reverse_unary},
    {Op::Erf, Reads::inputs, reverse_unary},
    {Op::Exp, Reads::inputs, reverse_unary},
    {Op::Expand, Reads::nothing, reverse_movement},
    {Op::Flatten, Reads::nothing, reverse_reinterpretation},
    {Op::Gather, Reads::nothing, reverse_movement},
    {Op::Gelu, Reads::inputs, reverse_unary},
    {Op::Gemm, Reads::other_inputs, reverse_gemm},
    {Op::GlobalAveragePool, Reads::nothing, reverse_mean},
    {Op::HardSigmoid, Reads::inputs, reverse_unary},
    {Op::HardSwish, Reads::inputs, reverse_unary},
    {Op::Identity, Reads::nothing, reverse_reinterpretation},
    {Op::LayerNormalization, Reads::inputs, reverse_normalization},
    {Op::LeakyRelu, Reads::inputs, reverse_unary},
    {Op::MatMul, Reads::other_inputs, reverse_mat_mul},
    {Op::MaxPool, Reads::inputs, reverse_max_pool},
    {Op::Mul, Reads::other_inputs, reverse_binary},
    {Op::Neg, Reads::nothing, reverse_unary},
    {Op::Pad, Reads::nothing, reverse_movement},
    {Op::RMSNormalization, Reads::inputs, reverse_normalization},
    {Op::ReduceMean, Reads::nothing, reverse_mean},
    {Op::ReduceSum, Reads::nothing, reverse_mean},
    {Op::Relu, Reads::inputs, reverse_unary},
    {Op::Reshape, Reads::nothing, reverse_reinterpretation},
    {Op::RotaryEmbedding, Reads::nothing, reverse_rotary_embedding},
    {Op::Sigmoid, Reads::output, reverse_unary},
    {Op::Slice, Reads::nothing, reverse_movement},
    {Op::Softmax, Reads::output, reverse_softmax},
    {Op::Split, Reads::nothing, reverse_movement},
    {Op::Sqrt, Reads::output, reverse_unary},
    {Op::Squeeze, Reads::nothing, reverse_reinterpretation},
    {Op::Sub, Reads::nothing, reverse_binary},
    {Op::Tanh, Reads::output, reverse_unary},
    {Op::Transpose, Reads::nothing, reverse_movement},
    {Op::Unsqueeze, Reads::nothing, reverse_reinterpretation},
};

}  // namespace

std::span<const ReverseRow> reverse_rows() {
  return kRows;
}

const ReverseRow* find_reverse_row(graph::Op op) {
  for (const ReverseRow& row : kRows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

}  // namespace ctk::calibrate
