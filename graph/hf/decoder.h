// Decoders of Llama's family as one graph, whatever file their weights come from.
//   input_ids i64 [1, sequence] -> logits f32 [1, sequence, vocabulary]
// Inside, hidden states are [T, D] and products are Gemm on the checkpoint's own [out, in] weights (mapped, not
// copied). Nodes and constants bear the checkpoint's module names: node "model.layers.0.self_attn.q_proj", weight
// "model.layers.0.self_attn.q_proj.weight".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/hf/maker.h"
#include "graph/hf/rope.h"

namespace ctk::graph::hf {

enum class Activation { silu, gelu, gelu_tanh };

struct DecoderConfig {
  std::string architecture;  // for messages and the graph's name: "LlamaForCausalLM"
  std::int64_t hidden_size = 0, intermediate_size = 0, vocab_size = 0;
  std::int64_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t max_positions = 0;
  std::int64_t sliding_window = 0;  // 0: none. Else sequences past it are refused, up to it they are exact
  double norm_epsilon = 1e-5;
  RopeConfig rope;
  Activation activation = Activation::silu;
  bool ties_embeddings = false;  // the head is the embedding
  bool has_qkv_bias = false, has_output_bias = false, has_mlp_bias = false;
  bool has_qk_norm = false;       // RMSNormalization of each head of q and k (Qwen3)
  bool is_norm_plus_one = false;  // norms store w - 1 (Gemma)
  double embedding_scale = 1.0;   // Gemma: sqrt(hidden_size)
};

// Rows of the rotary tables: a longer sequence is an error of RotaryEmbedding.
std::int64_t position_rows(const DecoderConfig& config);

// Every number that a table or a loop is sized by, and heads that do not divide. Errors: input (field, expected,
// found).
Status check_decoder(const DecoderConfig& config);

// Asks `lookup` for each tensor once, by Hugging Face's names of Llama ("model.embed_tokens.weight",
// "model.layers.<i>.self_attn.{q,k,v,o}_proj.{weight,bias}", "....self_attn.{q,k}_norm.weight",
// "....mlp.{gate,up,down}_proj.weight", "....{input,post_attention}_layernorm.weight", "model.norm.weight",
// "lm_head.weight"), q and k in the half-split rotary form. What was decided stands in reader_notes.
// Linear layers are asked of `codes` first, where it is given.
// Errors: those of check_decoder(), `lookup` and `codes`.
Result<Graph> build_decoder(const DecoderConfig& config, const TensorLookup& lookup, const CodeLookup& codes = {});

}  // namespace ctk::graph::hf
