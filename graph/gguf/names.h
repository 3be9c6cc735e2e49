// How the two worlds name and order the same decoder: Hugging Face's modules and GGUF's tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ctk::graph::gguf {

struct Architecture {
  std::string_view gguf;    // general.architecture, and the prefix of its keys
  std::string_view hf;      // as in config.json
  bool interleaves_rotary;  // rows of q and k lie as (pair, half) within a head; else as (half, pair), Hugging Face's
  bool is_norm_plus_one;    // config.json's norms store w - 1, GGUF's store w
  bool scales_embedding;    // by sqrt(hidden size)
  bool is_gelu;             // tanh form; else silu
};

// Null: unknown. Where two Hugging Face names share a GGUF name, the first row is the one that is read.
const Architecture* architecture_by_gguf(std::string_view name);
const Architecture* architecture_by_hf(std::string_view name);
std::string known_gguf_architectures();  // "llama, qwen2, ..."

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight"; none for names no decoder has.
std::optional<std::string> gguf_name(std::string_view hf_name);
// Whether the rows of this tensor (Hugging Face's name) are turned by rotary embeddings: weights and biases of q and k.
bool has_rotary_rows(std::string_view hf_name);
// The row of Hugging Face's (half, pair) order that lies at `row` in the interleaved (pair, half) order.
constexpr std::size_t hf_row(std::size_t row, std::size_t head_dim) {
  const std::size_t head = row / head_dim, within = row % head_dim;
  return head * head_dim + within % 2 * (head_dim / 2) + within / 2;
}

}  // namespace ctk::graph::gguf
