// config.json of a checkpoint folder, read as a closed world: what would change the function and is not understood is
// an error; what is merely unknown is named in the notes.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/hf/decoder.h"
#include "graph/hf/encoder.h"
#include "graph/hf/quantization_config.h"

namespace ctk::graph::hf {

struct ModelConfig {
  std::variant<DecoderConfig, EncoderConfig> model;
  std::vector<std::string> notes;
  std::optional<QuantizationConfig> quantization;  // of weights that are stored as codes
};

// Errors: input (path, key, expected, found; an unknown architecture lists those we know).
Result<ModelConfig> read_config(const std::string& path);
Result<ModelConfig> parse_config(std::string_view text);

// "BertModel, GemmaForCausalLM, ..."
std::string known_architectures();

}  // namespace ctk::graph::hf
