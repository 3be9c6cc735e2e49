// ONNX for language models: the whole decoder with its KV cache, coded weights as MatMulNBits, codes as they are.
#pragma once

#include <string>

#include "graph/graph.h"

namespace ctk::exporter {

// A decoder as graph/hf builds it, turned into one that ONNX Runtime generates with:
//   in:  input_ids i64 [batch, sequence], attention_mask i64 [batch, past + sequence],
//        past_key_values.<n>.key, .value f32 [batch, kv heads, past, head size]
//   out: logits f32 [batch, sequence, vocabulary], present.<n>.key, .value f32 [batch, kv heads, past + sequence, head
//   size]
// Masks are ones, then zeros (padding on the right). Weights that bear codes become MatMulNBits (com.microsoft) of 4
// bits (codes of up to 4) or 8, with float32 scales and, for affine ones, zero points: code by code and scale by scale
// the numbers of the graph. Blocks are the groups, cut into powers of two; a ragged last one is padded with zeros.
// accuracy_level is 1 where the scheme keeps activations in float, 4 where it rounds them to 8 bits. Attention is
// GroupQueryAttention, which turns q and k itself where its kernel can (head sizes of whole 16s), else RotaryEmbedding
// does.
// Errors: input (an operator that is no part of a decoder, a group that is no multiple of 16, activations that are
// codes: names the node).
Result<graph::Graph> to_nbits(const graph::Graph& graph);
Result<std::string> onnx_nbits_of(const graph::Graph& graph);

}  // namespace ctk::exporter
