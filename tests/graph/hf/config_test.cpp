#include "graph/hf/config.h"

#include <gtest/gtest.h>

namespace ctk::graph::hf::test {
namespace {

const std::string kLlama =
    R"("architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"intermediate_size":172,)"
    R"("num_hidden_layers":5,"num_attention_heads":8,"num_key_value_heads":4,"vocab_size":512,)"
    R"("max_position_embeddings":512)";

// kLlama with `more` keys behind it; `without` drops a key of its own, with its number.
Result<ModelConfig> parse(const std::string& more = "", const std::string& without = "") {
  std::string text = kLlama;
  if (!without.empty()) {
    const auto at = text.find(",\"" + without + "\":");
    EXPECT_NE(at, std::string::npos);
    text.erase(at, text.find(',', at + 1) - at);
  }
  return parse_config("{" + text + (more.empty() ? "" : "," + more) + "}");
}

// The same keys under another architecture.
Result<ModelConfig> parse_as(const std::string& architecture, const std::string& type, const std::string& more = "") {
  std::string text = kLlama;
  text.replace(text.find("LlamaForCausalLM"), 16, architecture);
  text.replace(text.find("\"llama\""), 7, "\"" + type + "\"");
  return parse_config("{" + text + (more.empty() ? "" : "," + more) + "}");
}

DecoderConfig decoder(const Result<ModelConfig>& config) {
  if (!config) {
    ADD_FAILURE() << config.error().message;
    return {};
  }
  return std::get<DecoderConfig>(config->model);
}

void expect_error(const Result<ModelConfig>& config, const std::vector<std::string>& words) {
  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error().code, ErrorCode::input);
  for (const std::string& word : words) {
    EXPECT_NE(config.error().message.find(word), std::string::npos) << word << " in: " << config.error().message;
  }
}

TEST(Config, ReadsLlamaWithItsDefaults) {
  const DecoderConfig c = decoder(parse());
  EXPECT_EQ(c.head_dim, 8);
  EXPECT_EQ(c.kv_heads, 4);
  EXPECT_EQ(c.norm_epsilon, 1e-6);
  EXPECT_EQ(c.rope.theta, 10000.0);
  EXPECT_FALSE(c.ties_embeddings || c.has_qkv_bias || c.has_qk_norm || c.is_norm_plus_one);
  EXPECT_EQ(decoder(parse("", "num_key_value_heads")).kv_heads, 8);
}

TEST(Config, ArchitecturesDifferByTheirTable) {
  EXPECT_TRUE(decoder(parse_as("Qwen2ForCausalLM", "qwen2")).has_qkv_bias);
  EXPECT_FALSE(decoder(parse_as("Qwen2ForCausalLM", "qwen2")).has_output_bias);
  EXPECT_TRUE(decoder(parse_as("Qwen3ForCausalLM", "qwen3", R"("head_dim":128)")).has_qk_norm);
  const DecoderConfig gemma = decoder(parse_as("GemmaForCausalLM", "gemma", R"("head_dim":16)"));
  EXPECT_EQ(gemma.embedding_scale, 8.0);  // sqrt(64)
  EXPECT_TRUE(gemma.is_norm_plus_one && gemma.ties_embeddings);
  EXPECT_EQ(gemma.activation, Activation::gelu_tanh);
  const DecoderConfig biased = decoder(parse(R"("attention_bias":true,"mlp_bias":true)"));
  EXPECT_TRUE(biased.has_qkv_bias && biased.has_output_bias && biased.has_mlp_bias);
}

TEST(Config, ModelTypeStandsForAMissingArchitecture) {
  std::string text = kLlama;
  text.erase(0, text.find("\"model_type\""));
  EXPECT_EQ(decoder(parse_config("{" + text + "}")).architecture, "LlamaForCausalLM");
}

TEST(Config, WindowsCountOnlyWhereALayerSlides) {
  EXPECT_EQ(decoder(parse_as("MistralForCausalLM", "mistral")).sliding_window, 4096);  // silence is not null
  EXPECT_EQ(decoder(parse_as("Qwen2ForCausalLM", "qwen2")).sliding_window, 0);
  EXPECT_EQ(decoder(parse_as("MistralForCausalLM", "mistral", R"("sliding_window":128)")).sliding_window, 128);
  EXPECT_EQ(decoder(parse_as("MistralForCausalLM", "mistral", R"("sliding_window":null)")).sliding_window, 0);
  EXPECT_EQ(decoder(parse_as("Qwen2ForCausalLM", "qwen2", R"("sliding_window":128,"use_sliding_window":false)"))
                .sliding_window,
            0);
  EXPECT_EQ(decoder(parse_as("Qwen2ForCausalLM", "qwen2", R"("sliding_window":128,"use_sliding_window":true)"))
                .sliding_window,
            128);
  EXPECT_EQ(decoder(parse_as("Qwen2ForCausalLM", "qwen2",
                             R"("sliding_window":128,"layer_types":["full_attention","sliding_attention"])"))
                .sliding_window,
            128);
}

TEST(Config, ReadsRotaryScalingOfOldAndNewFiles) {
  const RopeConfig linear = decoder(parse(R"("rope_theta":5e5,"rope_scaling":{"type":"linear","factor":2.0})")).rope;
  EXPECT_EQ(linear.type, RopeType::linear);
  EXPECT_EQ(linear.theta, 5e5);
  EXPECT_EQ(linear.factor, 2.0);
  const RopeConfig llama3 =
      decoder(parse(R"("rope_parameters":{"rope_type":"llama3","rope_theta":5e5,"factor":8,"low_freq_factor":1,)"
                    R"("high_freq_factor":4,"original_max_position_embeddings":128})"))
          .rope;
  EXPECT_EQ(llama3.type, RopeType::llama3);
  EXPECT_EQ(llama3.theta, 5e5);
  EXPECT_EQ(llama3.original_max_positions, 128);
  const RopeConfig yarn = decoder(parse(R"("rope_scaling":{"rope_type":"yarn","factor":4.0})")).rope;
  EXPECT_EQ(yarn.type, RopeType::yarn);
  EXPECT_EQ(yarn.original_max_positions, 512);  // max_position_embeddings
  EXPECT_EQ(decoder(parse(R"("rope_parameters":{"rope_type":"default","rope_theta":7e4})")).rope.theta, 7e4);
}

TEST(Config, RefusesRotaryScalingItDoesNotKnow) {
  expect_error(parse(R"("rope_scaling":{"type":"dynamic","factor":2.0})"),
               {"rope_scaling.rope_type", "default, linear, llama3 or yarn", "\"dynamic\""});
  expect_error(parse(R"("rope_scaling":{"type":"linear"})"), {"rope_scaling.factor", "found none"});
  expect_error(parse(R"("rope_scaling":{"type":"linear","factor":0})"), {"rope_scaling.factor", "above 0"});
  expect_error(parse(R"("rope_scaling":{"type":"linear","factor":"2"})"), {"rope_scaling.factor", "found \"2\""});
  expect_error(parse(R"("rope_scaling":{"type":"linear","factor":2,"short_factor":[1]})"),
               {"rope_scaling.short_factor"});
  expect_error(parse(R"("rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4})"),
               {"high_freq_factor", "more than low_freq_factor"});
  expect_error(parse(R"("rope_theta":0)"), {"rope_theta", "above 1"});
}

TEST(Config, NamesEveryKnownArchitectureWhereOneIsUnknown) {
  expect_error(parse_as("MambaForCausalLM", "mamba"),
               {"architectures", "\"MambaForCausalLM\"", "BertModel", "GemmaForCausalLM", "LlamaForCausalLM",
                "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"});
  expect_error(parse_config(R"({"model_type":"mamba"})"), {"\"mamba\"", "LlamaForCausalLM"});
  expect_error(parse_config("{}"), {"found none", "LlamaForCausalLM"});
  expect_error(parse_as("LlamaForCausalLM", "qwen2"), {"model_type", "\"llama\" for LlamaForCausalLM", "\"qwen2\""});
}

TEST(Config, RefusesHeadCountsThatDoNotDivide) {
  expect_error(parse(R"("num_key_value_heads":3)", "num_key_value_heads"),
               {"num_key_value_heads", "divisor of num_attention_heads 8", "found 3"});
  expect_error(parse(R"("num_attention_heads":7)", "num_attention_heads"),
               {"num_attention_heads", "divisor of hidden_size 64", "found 7"});
  expect_error(parse(R"("head_dim":5)"), {"head_dim", "even", "found 5"});
}

TEST(Config, RefusesNumbersThatAreNone) {
  expect_error(parse(R"("hidden_size":"64")", "hidden_size"), {"hidden_size", "an integer", "found \"64\""});
  expect_error(parse(R"("hidden_size":64.5)", "hidden_size"), {"hidden_size", "an integer", "found 64.5"});
  expect_error(parse(R"("hidden_size":18446744073709551615)", "hidden_size"), {"hidden_size", "an integer"});
  expect_error(parse(R"("hidden_size":-64)", "hidden_size"), {"hidden_size", "found -64"});
  expect_error(parse("", "vocab_size"), {"vocab_size", "found none"});
  expect_error(parse(R"("num_hidden_layers":1000000000)", "num_hidden_layers"),
               {"num_hidden_layers", "found 1000000000"});
  expect_error(parse(R"("hidden_size":64)"), {"\"hidden_size\" twice"});
}

TEST(Config, RefusesWhatChangesTheFunctionUnseen) {
  expect_error(parse(R"("residual_multiplier":0.22)"), {"residual_multiplier", "found 0.22"});
  expect_error(parse(R"("final_logit_softcapping":30.0)"), {"final_logit_softcapping", "none", "found 30.0"});
  expect_error(parse(R"("rope_interleaved":true)"), {"rope_interleaved", "false", "found true"});
  expect_error(parse(R"("hidden_act":"relu2")"), {"hidden_act", "\"relu2\""});
  expect_error(parse(R"("quantization_config":{"quant_method":"fp8"})"),
               {"quantization_config.quant_method", "\"fp8\""});
  expect_error(parse(R"("compression_config":{"format":"pack-quantized"})"),
               {"compression_config", "quantization_config"});
  expect_error(parse_as("Qwen2ForCausalLM", "qwen2", R"("attention_bias":true)"),
               {"attention_bias", "Qwen2ForCausalLM"});
  EXPECT_TRUE(
      parse(R"("residual_multiplier":1.0,"final_logit_softcapping":null,"rope_interleaved":false)").has_value());
}

TEST(Config, CarriesHowWeightsAreCoded) {
  const auto config = parse(R"("quantization_config":{"quant_method":"gptq","bits":4,"group_size":128})");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  ASSERT_TRUE(config->quantization.has_value());
  EXPECT_EQ(config->quantization->method, "gptq");
  EXPECT_FALSE(parse()->quantization.has_value());
}

TEST(Config, NamesKeysItDidNotRead) {
  const auto config = parse(R"("torch_dtype":"bfloat16","some_new_key":3,"other":null)");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  ASSERT_EQ(config->notes.size(), 1u);
  EXPECT_EQ(config->notes[0], "keys of config.json that were not read: some_new_key");
}

TEST(Config, ReadsBert) {
  const std::string bert =
      R"({"architectures":["BertModel"],"model_type":"bert","hidden_size":384,"intermediate_size":1536,)"
      R"("num_hidden_layers":6,"num_attention_heads":12,"vocab_size":30522,"max_position_embeddings":512)";
  const auto config = parse_config(bert + "}");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  const auto& c = std::get<EncoderConfig>(config->model);
  EXPECT_EQ(c.norm_epsilon, 1e-12);
  EXPECT_EQ(c.type_vocab_size, 2);
  EXPECT_EQ(c.activation, Activation::gelu);
  expect_error(parse_config(bert + R"(,"position_embedding_type":"relative_key"})"),
               {"position_embedding_type", "absolute"});
  expect_error(parse_config(bert + R"(,"is_decoder":true})"), {"is_decoder", "false"});
}

TEST(Config, RefusesTextThatIsNoObject) {
  expect_error(parse_config(""), {"JSON"});
  expect_error(parse_config("[1]"), {"object", "found [1]"});
  expect_error(parse_config("{\"a\":" + std::string(100000, '[')), {"JSON"});
  expect_error(parse_config("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}"), {"nested at most 32"});
}

}  // namespace
}  // namespace ctk::graph::hf::test
