#include "graph/hf/config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/file.h"
#include "core/printable.h"
#include "graph/hf/config_reader.h"

namespace ctk::graph::hf {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestConfig = 16'000'000, kConfigDepth = 32;

struct Architecture {
  std::string_view name, model_type;
  Result<ModelConfig> (*read)(ConfigReader& reader, const Architecture& self);
};

Result<ModelConfig> read_decoder(ConfigReader& reader, const Architecture& self);
Result<ModelConfig> read_encoder(ConfigReader& reader, const Architecture& self);

constexpr std::array<Architecture, 7> kArchitectures{{
    {"BertModel", "bert", read_encoder},
    {"BertForMaskedLM", "bert", read_encoder},
    {"GemmaForCausalLM", "gemma", read_decoder},
    {"LlamaForCausalLM", "llama", read_decoder},
    {"MistralForCausalLM", "mistral", read_decoder},
    {"Qwen2ForCausalLM", "qwen2", read_decoder},
    {"Qwen3ForCausalLM", "qwen3", read_decoder},
}};

// What says nothing of the function.
constexpr std::array kIdle{"_name_or_path",
                           "architectures",
                           "attention_dropout",
                           "attention_probs_dropout_prob",
                           "bos_token_id",
                           "classifier_dropout",
                           "dtype",
                           "eos_token_id",
                           "gradient_checkpointing",
                           "hidden_dropout_prob",
                           "id2label",
                           "initializer_range",
                           "is_llama_config",
                           "label2id",
                           "max_window_layers",
                           "model_type",
                           "output_attentions",
                           "output_hidden_states",
                           "pad_token_id",
                           "pretraining_tp",
                           "problem_type",
                           "return_dict",
                           "torch_dtype",
                           "torchscript",
                           "transformers.js_config",
                           "transformers_version",
                           "unk_token_id",
                           "use_cache"};

// What other models of the family compute by: allowed where it changes nothing.
constexpr std::array<std::pair<std::string_view, double>, 16> kNeutral{{{"add_cross_attention", 0.0},
                                                                        {"attention_multiplier", NAN},
                                                                        {"attn_logit_softcapping", NAN},
                                                                        {"clip_qkv", NAN},
                                                                        {"embedding_multiplier", 1.0},
                                                                        {"final_logit_softcapping", NAN},
                                                                        {"is_decoder", 0.0},
                                                                        {"is_encoder_decoder", 0.0},
                                                                        {"logit_scale", 1.0},
                                                                        {"logits_scaling", 1.0},
                                                                        {"no_rope_layers", NAN},
                                                                        {"num_experts", 0.0},
                                                                        {"num_local_experts", 0.0},
                                                                        {"partial_rotary_factor", 1.0},
                                                                        {"residual_multiplier", 1.0},
                                                                        {"rope_interleaved", 0.0}}};

void require_neutral(ConfigReader& reader, const json& object) {
  for (const auto& [name, neutral] : kNeutral) {
    const std::string key(name);
    const auto found = object.find(key);
    if (found == object.end()) continue;
    reader.skip(key);
    if (found->is_null()) continue;
    const bool is_so = (found->is_number() && found->get<double>() == neutral) ||
                       (found->is_boolean() && neutral == static_cast<double>(found->get<bool>()));
    if (is_so) continue;
    const std::string wish = std::isnan(neutral) ? "none" : found->is_boolean() ? "false" : std::to_string(neutral);
    reader.fail(key, wish, shown(*found), "This version computes no model that has it");
  }
}

Activation activation_of(ConfigReader& reader, const std::string& key, const std::string& name) {
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::gelu_tanh;
  reader.fail(key, "silu, gelu, gelu_pytorch_tanh or gelu_new", "\"" + printable(name) + "\"",
              "This version computes no other");
  return Activation::silu;
}

Status read_rope(ConfigReader& reader, RopeConfig& rope, std::int64_t max_positions) {
  const auto theta = reader.real("rope_theta");
  const auto original = reader.integer("original_max_position_embeddings");
  const json* scaling = reader.object("rope_scaling");
  const json* parameters = reader.object("rope_parameters");
  if (scaling != nullptr && parameters != nullptr) {
    reader.fail("rope_scaling", "none beside rope_parameters", shown(*scaling), "Keep one of the two");
  }
  rope.theta = theta.value_or(10000.0);
  if (!(rope.theta > 1.0))
    reader.fail("rope_theta", "a number above 1", std::to_string(rope.theta), "Correct the file");
  const json* chosen = parameters != nullptr ? parameters : scaling;
  if (chosen == nullptr) return {};
  ConfigReader inner(*chosen, parameters != nullptr ? "rope_parameters." : "rope_scaling.");
  rope.theta = inner.real("rope_theta").value_or(rope.theta);
  const auto old_name = inner.text("type");
  const std::string type = inner.text("rope_type").value_or(old_name.value_or("default"));
  const auto positive = [&](const std::string& key, std::optional<double> value) {
    if (value && !(*value > 0.0)) inner.fail(key, "a number above 0", std::to_string(*value), "Correct the file");
    return value;
  };
  if (type != "default") rope.factor = positive("factor", inner.required_real("factor")).value();
  rope.original_max_positions =
      inner.integer("original_max_position_embeddings").value_or(original.value_or(max_positions));
  if (rope.original_max_positions < 1) {
    inner.fail("original_max_position_embeddings", "a number above 0", std::to_string(rope.original_max_positions),
               "Correct the file");
  }
  if (const auto part = inner.real("partial_rotary_factor"); part && *part != 1.0) {
    inner.fail("partial_rotary_factor", "1", std::to_string(*part), "This version turns whole heads only");
  }
  if (type == "linear") {
    rope.type = RopeType::linear;
  } else if (type == "llama3") {
    rope.type = RopeType::llama3;
    rope.low_freq_factor = positive("low_freq_factor", inner.required_real("low_freq_factor")).value();
    rope.high_freq_factor = positive("high_freq_factor", inner.required_real("high_freq_factor")).value();
    if (!(rope.low_freq_factor < rope.high_freq_factor)) {
      inner.fail("high_freq_factor", "more than low_freq_factor", std::to_string(rope.high_freq_factor),
                 "Correct the file");
    }
  } else if (type == "yarn") {
    rope.type = RopeType::yarn;
    rope.beta_fast = positive("beta_fast", inner.real("beta_fast")).value_or(32.0);
    rope.beta_slow = positive("beta_slow", inner.real("beta_slow")).value_or(1.0);
    rope.attention_factor = positive("attention_factor", inner.real("attention_factor"));
    rope.mscale = inner.real("mscale").value_or(0.0);
    rope.mscale_all_dim = inner.real("mscale_all_dim").value_or(0.0);
    rope.truncates = inner.boolean("truncate").value_or(true);
  } else if (type != "default") {
    inner.fail("rope_type", "default, linear, llama3 or yarn", "\"" + printable(type) + "\"",
               "This version computes no other");
  }
  if (!(rope.theta > 1.0)) inner.fail("rope_theta", "a number above 1", std::to_string(rope.theta), "Correct the file");
  const auto unknown = inner.unasked();
  if (!unknown.empty()) inner.fail(unknown[0], "no such key", "one", "This version does not know what it does");
  return inner.status();
}

// The window of layers that have one; 0: none has.
std::int64_t read_window(ConfigReader& reader, const Architecture& self) {
  auto window = reader.integer("sliding_window");
  if (!reader.has("sliding_window")) window = 4096;  // what transformers takes where nothing is said; null says none
  const bool is_used = reader.boolean("use_sliding_window").value_or(self.model_type == "mistral");
  bool has_sliding_layer = is_used;
  if (const json* types = reader.list("layer_types")) {
    has_sliding_layer = false;
    for (const json& type : *types) {
      if (type == "sliding_attention") {
        has_sliding_layer = true;
      } else if (type != "full_attention") {
        reader.fail("layer_types", "full_attention or sliding_attention", shown(type),
                    "This version computes no other");
      }
    }
  }
  if (!has_sliding_layer || !window) return 0;
  if (*window < 1)
    reader.fail("sliding_window", "a number above 0, or null", std::to_string(*window), "Correct the file");
  return *window;
}

Result<ModelConfig> read_decoder(ConfigReader& reader, const Architecture& self) {
  DecoderConfig c;
  ModelConfig result;
  const bool is_gemma = self.model_type == "gemma", is_qwen2 = self.model_type == "qwen2",
             is_qwen3 = self.model_type == "qwen3", is_llama = self.model_type == "llama";
  c.architecture = self.name;
  c.hidden_size = reader.required_integer("hidden_size");
  c.intermediate_size = reader.required_integer("intermediate_size");
  c.vocab_size = reader.required_integer("vocab_size");
  c.layers = reader.required_integer("num_hidden_layers");
  c.heads = reader.required_integer("num_attention_heads");
  c.max_positions = reader.required_integer("max_position_embeddings");
  const auto kv_heads = reader.integer("num_key_value_heads");
  c.kv_heads = kv_heads.value_or(c.heads);
  if (!kv_heads && !is_llama) reader.fail("num_key_value_heads", "an integer", "none", "Complete the file");
  const auto head_dim = reader.integer("head_dim");
  if (!head_dim && (is_gemma || is_qwen3)) reader.fail("head_dim", "an integer", "none", "Complete the file");
  c.head_dim = head_dim.value_or(c.heads > 0 ? c.hidden_size / c.heads : 0);
  if (!head_dim && c.heads > 0 && c.hidden_size % c.heads != 0) {
    reader.fail("num_attention_heads", "a divisor of hidden_size " + std::to_string(c.hidden_size),
                std::to_string(c.heads), "Correct the file, or give head_dim");
  }
  c.norm_epsilon = reader.real("rms_norm_eps").value_or(1e-6);
  CTK_CHECK(read_rope(reader, c.rope, c.max_positions));
  c.ties_embeddings = reader.boolean("tie_word_embeddings").value_or(is_gemma);
  c.sliding_window = is_gemma || is_llama ? 0 : read_window(reader, self);
  const std::string act_key = is_gemma && reader.text("hidden_activation") ? "hidden_activation" : "hidden_act";
  std::string act = reader.text(act_key).value_or(is_gemma ? "gelu_pytorch_tanh" : "silu");
  if (is_gemma && act == "gelu") {
    act = "gelu_pytorch_tanh";
    result.notes.push_back("hidden_act gelu of Gemma was taken as gelu_pytorch_tanh, which it was trained with");
  }
  c.activation = activation_of(reader, act_key, act);
  const bool has_bias = reader.boolean("attention_bias").value_or(false);
  if (has_bias && !is_llama && !is_qwen3 && !is_gemma) {
    reader.fail("attention_bias", "false for " + c.architecture, "true", "This version computes no such model");
  }
  c.has_qkv_bias = is_qwen2 || has_bias;
  c.has_output_bias = has_bias;
  c.has_mlp_bias = reader.boolean("mlp_bias").value_or(false);
  c.has_qk_norm = is_qwen3;
  if (is_gemma) {
    c.is_norm_plus_one = true;
    c.embedding_scale = std::sqrt(static_cast<double>(std::max<std::int64_t>(c.hidden_size, 0)));
  }
  CTK_CHECK(reader.status());
  CTK_CHECK(check_decoder(c));
  result.model = std::move(c);
  return result;
}

Result<ModelConfig> read_encoder(ConfigReader& reader, const Architecture& self) {
  EncoderConfig c;
  c.architecture = self.name;
  if (self.name == "BertForMaskedLM") c.prefix = "bert.";
  c.hidden_size = reader.required_integer("hidden_size");
  c.intermediate_size = reader.required_integer("intermediate_size");
  c.vocab_size = reader.required_integer("vocab_size");
  c.type_vocab_size = reader.integer("type_vocab_size").value_or(2);
  c.layers = reader.required_integer("num_hidden_layers");
  c.heads = reader.required_integer("num_attention_heads");
  c.max_positions = reader.required_integer("max_position_embeddings");
  c.norm_epsilon = reader.real("layer_norm_eps").value_or(1e-12);
  c.activation = activation_of(reader, "hidden_act", reader.text("hidden_act").value_or("gelu"));
  if (c.activation == Activation::silu)
    reader.fail("hidden_act", "gelu for " + c.architecture, "silu", "Correct the file");
  const std::string positions = reader.text("position_embedding_type").value_or("absolute");
  if (positions != "absolute") {
    reader.fail("position_embedding_type", "absolute", "\"" + printable(positions) + "\"",
                "This version computes no other");
  }
  reader.skip("tie_word_embeddings");  // of a head that is not built
  CTK_CHECK(reader.status());
  CTK_CHECK(check_encoder(c));
  return ModelConfig{std::move(c), {}, std::nullopt};
}

// By `architectures`, else by `model_type`.
Result<const Architecture*> find_architecture(ConfigReader& reader) {
  const auto model_type = reader.text("model_type");
  const json* names = reader.list("architectures");
  CTK_CHECK(reader.status());
  std::string name;
  if (names != nullptr && !names->empty()) {
    if (!(*names)[0].is_string()) {
      return input_error("architectures: expected names, found " + shown(*names) + ". Correct the file");
    }
    name = (*names)[0].get<std::string>();
  }
  for (const Architecture& known : kArchitectures) {
    const bool is_it = name.empty() ? model_type == known.model_type : name == known.name;
    if (!is_it) continue;
    if (model_type && *model_type != known.model_type) {
      return input_error("model_type: expected \"" + std::string(known.model_type) + "\" for " +
                         std::string(known.name) + ", found \"" + printable(*model_type) + "\". Correct the file");
    }
    return &known;
  }
  return input_error("architectures: expected one of " + known_architectures() + ", found " +
                     (!name.empty() ? "\"" + printable(name) + "\""
                      : model_type  ? "none, and model_type \"" + printable(*model_type) + "\""
                                    : "none") +
                     ". Export the model to ONNX instead");
}

}  // namespace

std::string known_architectures() {
  std::string names;
  for (const Architecture& known : kArchitectures) names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

Result<ModelConfig> parse_config(std::string_view text) {
  CTK_TRY(const json object, parse_json(text, kConfigDepth));
  ConfigReader reader(object);
  CTK_TRY(const Architecture* architecture, find_architecture(reader));
  std::optional<QuantizationConfig> quantization;
  if (const json* found = reader.object("quantization_config")) {
    CTK_TRY(quantization, parse_quantization(*found));
  }
  for (const char* key : {"compression_config", "sparsity_config"}) {  // where older libraries put it
    if (const json* found = reader.object(key); found != nullptr && !found->empty()) {
      reader.fail(key, "none", shown(*found), "Save the checkpoint by a library that writes quantization_config");
    }
  }
  require_neutral(reader, object);
  CTK_TRY(ModelConfig config, architecture->read(reader, *architecture));
  config.quantization = std::move(quantization);
  for (const char* key : kIdle) reader.skip(key);
  std::string unknown;
  for (const std::string& key : reader.unasked()) unknown += (unknown.empty() ? "" : ", ") + printable(key);
  if (!unknown.empty()) config.notes.push_back("keys of config.json that were not read: " + unknown);
  return config;
}

Result<ModelConfig> read_config(const std::string& path) {
  CTK_TRY(const MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > kLargestConfig) {
    return input_error(path + ": expected at most " + std::to_string(kLargestConfig) + " bytes, found " +
                       std::to_string(file.bytes().size()) + ". Check the file");
  }
  auto config = parse_config(file.text());
  if (!config) return std::move(config).error().with_context(path);
  return config;
}

}  // namespace ctk::graph::hf
