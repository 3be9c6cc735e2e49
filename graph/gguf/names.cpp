#include "graph/gguf/names.h"

#include <algorithm>
#include <array>

namespace ctk::graph::gguf {
namespace {

constexpr std::array kArchitectures{
    Architecture{"llama", "LlamaForCausalLM", true, false, false, false},
    Architecture{"llama", "MistralForCausalLM", true, false, false, false},
    Architecture{"qwen2", "Qwen2ForCausalLM", false, false, false, false},
    Architecture{"qwen3", "Qwen3ForCausalLM", false, false, false, false},
    Architecture{"gemma", "GemmaForCausalLM", false, true, true, true},
};

struct NamePair {
  std::string_view hf, gguf;
};
constexpr std::array kModules{
    NamePair{"self_attn.q_proj", "attn_q"},
    NamePair{"self_attn.k_proj", "attn_k"},
    NamePair{"self_attn.v_proj", "attn_v"},
    NamePair{"self_attn.o_proj", "attn_output"},
    NamePair{"self_attn.q_norm", "attn_q_norm"},
    NamePair{"self_attn.k_norm", "attn_k_norm"},
    NamePair{"mlp.gate_proj", "ffn_gate"},
    NamePair{"mlp.up_proj", "ffn_up"},
    NamePair{"mlp.down_proj", "ffn_down"},
    NamePair{"input_layernorm", "attn_norm"},
    NamePair{"post_attention_layernorm", "ffn_norm"},
};
constexpr std::array kWhole{
    NamePair{"model.embed_tokens.weight", "token_embd.weight"},
    NamePair{"model.norm.weight", "output_norm.weight"},
    NamePair{"lm_head.weight", "output.weight"},
};

}  // namespace

const Architecture* architecture_by_gguf(std::string_view name) {
  const auto found = std::ranges::find(kArchitectures, name, &Architecture::gguf);
  return found == kArchitectures.end() ? nullptr : &*found;
}

const Architecture* architecture_by_hf(std::string_view name) {
  const auto found = std::ranges::find(kArchitectures, name, &Architecture::hf);
  return found == kArchitectures.end() ? nullptr : &*found;
}

std::string known_gguf_architectures() {
  std::string names;
  for (const Architecture& row : kArchitectures) {
    if (&row == architecture_by_gguf(row.gguf)) names += (names.empty() ? "" : ", ") + std::string(row.gguf);
  }
  return names;
}

std::optional<std::string> gguf_name(std::string_view hf_name) {
  for (const NamePair& pair : kWhole) {
    if (pair.hf == hf_name) return std::string(pair.gguf);
  }
  constexpr std::string_view kLayers = "model.layers.";
  if (!hf_name.starts_with(kLayers)) return std::nullopt;
  const std::string_view rest = hf_name.substr(kLayers.size());
  const std::size_t dot = rest.find('.'), last = rest.rfind('.');
  if (dot == std::string_view::npos || dot == last) return std::nullopt;
  const std::string_view module = rest.substr(dot + 1, last - dot - 1);
  for (const NamePair& pair : kModules) {
    if (pair.hf == module)
      return "blk." + std::string(rest.substr(0, dot)) + "." + std::string(pair.gguf) + std::string(rest.substr(last));
  }
  return std::nullopt;
}

bool has_rotary_rows(std::string_view hf_name) {
  return hf_name.find(".self_attn.q_proj.") != std::string_view::npos ||
         hf_name.find(".self_attn.k_proj.") != std::string_view::npos;
}

}  // namespace ctk::graph::gguf
