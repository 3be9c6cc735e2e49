#include "export/gguf_metadata.h"

#include <cmath>
#include <filesystem>
#include <numbers>

#include "graph/gguf/llama.h"
#include "graph/hf/config.h"

namespace ctk::exporter {
namespace {

using graph::gguf::Metadata;
using graph::hf::DecoderConfig;
using graph::hf::RopeConfig;
using graph::hf::RopeType;

// What each frequency of llama3's scaling is divided by; one frequency a pair of head_dim.
std::vector<float> llama3_factors(const RopeConfig& rope, std::int64_t head_dim) {
  std::vector<float> factors;
  const double original = static_cast<double>(rope.original_max_positions);
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    const double frequency = std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    const double smooth =
        (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
    double factor = 1.0 / ((1.0 - smooth) / rope.factor + smooth);
    if (wavelength < original / rope.high_freq_factor) factor = 1.0;
    if (wavelength > original / rope.low_freq_factor) factor = rope.factor;
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

Status add_rope(GgufSource& source, const std::string& prefix) {
  const RopeConfig& rope = source.config.rope;
  Metadata& keys = source.metadata;
  keys.set_u32(prefix + "rope.dimension_count", static_cast<std::uint32_t>(source.config.head_dim));
  keys.set_f32(prefix + "rope.freq_base", static_cast<float>(rope.theta));
  if (rope.type == RopeType::llama3) source.frequency_factors = llama3_factors(rope, source.config.head_dim);
  if (rope.type != RopeType::linear && rope.type != RopeType::yarn) return {};
  keys.set_text(prefix + "rope.scaling.type", rope.type == RopeType::linear ? "linear" : "yarn");
  keys.set_f32(prefix + "rope.scaling.factor", static_cast<float>(rope.factor));
  if (rope.type == RopeType::linear) return {};
  keys.set_u32(prefix + "rope.scaling.original_context_length",
               static_cast<std::uint32_t>(rope.original_max_positions));
  keys.set_f32(prefix + "rope.scaling.yarn_beta_fast", static_cast<float>(rope.beta_fast));
  keys.set_f32(prefix + "rope.scaling.yarn_beta_slow", static_cast<float>(rope.beta_slow));
  const double usual = 1.0 + 0.1 * std::log(rope.factor), found = rope_attention_factor(rope);
  if (std::abs(found - usual) > 1e-6)
    keys.set_f32(prefix + "rope.scaling.attn_factor", static_cast<float>(found / usual));
  return {};
}

Result<GgufSource> from_folder(const std::string& folder) {
  const std::filesystem::path path(folder);
  CTK_TRY(const graph::hf::ModelConfig read, graph::hf::read_config((path / "config.json").string()));
  GgufSource source;
  const auto* decoder = std::get_if<DecoderConfig>(&read.model);
  if (decoder != nullptr) source.architecture = graph::gguf::architecture_by_hf(decoder->architecture);
  if (source.architecture == nullptr) {
    return input_error(folder + ": expected a decoder of an architecture that llama.cpp has (" +
                       graph::gguf::known_gguf_architectures() + "), found " +
                       (decoder != nullptr ? decoder->architecture : "an encoder") + ". Choose another format");
  }
  source.config = *decoder;
  const DecoderConfig& c = source.config;
  CTK_CHECK(check_decoder(c));
  Metadata& keys = source.metadata;
  const std::string prefix = std::string(source.architecture->gguf) + ".";
  const auto number = [&](const std::string& key, std::int64_t value) {
    keys.set_u32(prefix + key, static_cast<std::uint32_t>(value));
  };
  keys.set_text("general.architecture", source.architecture->gguf);
  keys.set_text("general.type", "model");
  number("block_count", c.layers);
  number("context_length", std::min<std::int64_t>(c.max_positions, 0xffffffff));
  number("embedding_length", c.hidden_size);
  number("feed_forward_length", c.intermediate_size);
  number("attention.head_count", c.heads);
  number("attention.head_count_kv", c.kv_heads);
  number("attention.key_length", c.head_dim);
  number("attention.value_length", c.head_dim);
  number("vocab_size", c.vocab_size);
  if (c.sliding_window > 0) number("attention.sliding_window", c.sliding_window);
  keys.set_f32(prefix + "attention.layer_norm_rms_epsilon", static_cast<float>(c.norm_epsilon));
  CTK_CHECK(add_rope(source, prefix));
  CTK_CHECK(add_tokenizer(folder, c.vocab_size, keys));
  return source;
}

Result<GgufSource> from_gguf(const std::string& path) {
  CTK_TRY(const graph::gguf::File file, graph::gguf::File::open(path));
  GgufSource source;
  auto config = graph::gguf::decoder_config(file);
  if (!config) return std::move(config).error().with_context(path);
  source.config = std::move(*config);
  source.architecture = graph::gguf::architecture_by_hf(source.config.architecture);
  source.frequency_factors = source.config.rope.frequency_factors;
  for (std::string_view key : file.keys()) {
    // Of the file as it was: these are told anew, or hold what we do not write.
    if (key == "general.alignment" || key == "general.file_type" || key == "general.quantization_version") continue;
    source.metadata.copy(key, *file.find(key));
  }
  return source;
}

}  // namespace

Result<GgufSource> gguf_source(const std::string& model) {
  if (model.empty()) {
    return input_error(
        "gguf: expected the checkpoint folder or GGUF file the model was read from, found none. Export "
        "from the source model");
  }
  CTK_TRY(GgufSource source, std::filesystem::is_directory(model) ? from_folder(model) : from_gguf(model));
  source.metadata.set_u32("general.quantization_version", 2);
  return source;
}

}  // namespace ctk::exporter
