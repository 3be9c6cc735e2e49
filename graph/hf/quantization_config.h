// quantization_config of config.json: how compressed-tensors, GPTQ and AWQ say that weights are stored as codes. A
// closed world: what would change numbers and is not understood is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "graph/hf/json.h"

namespace ctk::graph::hf {

// How a layer's codes lie in the file (packed_weights.cpp has the tables).
enum class CodeForm { gptq, awq, packed, integers, dense };

// Layers that are stored alike.
struct CodeGroup {
  std::string key;  // for messages: "quantization_config.config_groups.group_0", "quantization_config"
  CodeForm form = CodeForm::packed;
  int bits = 4;
  std::int64_t group_size = 0;        // inputs a scale covers; 0: all of a row
  bool is_tensor_wide = false;        // one scale for the whole weight
  std::optional<bool> is_symmetric;   // none: the file does not say
  bool stores_zero_less_one = false;  // GPTQ's first form
  bool orders_groups = false;         // columns are dealt out to groups by a tensor of indices
  std::vector<std::string> targets;   // module names, "re:" and a pattern, or a class; empty: every linear layer
};

struct QuantizationConfig {
  std::string method;  // "compressed-tensors", "gptq", "awq"
  std::vector<CodeGroup> groups;
  std::vector<std::string> ignore;  // like targets; of gptq and awq parts of names
};

// Errors: input (key, expected, found, remedy): another method or form, activations or caches that are codes, 8-bit
// floats, sparsity, widths, patterns that do not compile, any key that is set and unknown.
Result<QuantizationConfig> parse_quantization(const nlohmann::json& object);

// Whether one of `entries` names the module: as a whole, by a pattern from its start on ("re:"), or by its class
// ("Linear", "Embedding"). Errors: input (a pattern that takes too many steps).
Result<bool> names_module(const std::vector<std::string>& entries, const std::string& module, std::string_view kind);
// The group a module belongs to, by name before by class; null where its weight is stored as floats.
Result<const CodeGroup*> group_of(const QuantizationConfig& config, const std::string& module, std::string_view kind);

}  // namespace ctk::graph::hf
