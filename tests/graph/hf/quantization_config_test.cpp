#include "graph/hf/quantization_config.h"

#include <gtest/gtest.h>

namespace ctk::graph::hf::test {
namespace {

Result<QuantizationConfig> parse(const std::string& text) {
  const auto object = parse_json(text, 16);
  EXPECT_TRUE(object.has_value()) << text;
  return parse_quantization(*object);
}

void expect_error(const std::string& text, const std::vector<std::string>& words) {
  const auto config = parse(text);
  ASSERT_FALSE(config.has_value()) << text;
  EXPECT_EQ(config.error().code, ErrorCode::input);
  for (const std::string& word : words) {
    EXPECT_NE(config.error().message.find(word), std::string::npos) << word << " in: " << config.error().message;
  }
}

std::string gptq(const std::string& more = "", const std::string& bits = "4", const std::string& size = "128") {
  return R"({"quant_method":"gptq","bits":)" + bits + R"(,"group_size":)" + size + more + "}";
}
std::string awq(const std::string& more = "") {
  return R"({"quant_method":"awq","bits":4,"group_size":64)" + more + "}";
}
// One group with `weights` inside its weights and `more` beside them.
std::string tensors(const std::string& weights = "", const std::string& more = "", const std::string& top = "") {
  return R"({"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":{"group_0":{"targets":["Linear"],)"
         R"("weights":{"num_bits":4,"type":"int","strategy":"group","group_size":32)" +
         weights + "}" + more + "}}" + top + "}";
}

CodeGroup only(const Result<QuantizationConfig>& config) {
  if (!config) {
    ADD_FAILURE() << config.error().message;
    return {};
  }
  EXPECT_EQ(config->groups.size(), 1u);
  return config->groups[0];
}

TEST(QuantizationConfig, ReadsGptq) {
  const CodeGroup group =
      only(parse(gptq(R"(,"desc_act":false,"sym":true,"damp_percent":0.01,"lm_head":false,"meta":{"a":[1]})")));
  EXPECT_EQ(group.form, CodeForm::gptq);
  EXPECT_EQ(group.bits, 4);
  EXPECT_EQ(group.group_size, 128);
  EXPECT_EQ(group.is_symmetric, true);
  EXPECT_TRUE(group.stores_zero_less_one);
  EXPECT_FALSE(only(parse(gptq(R"(,"checkpoint_format":"gptq_v2")"))).stores_zero_less_one);
  EXPECT_FALSE(only(parse(gptq(R"(,"format":"gptq_v2")"))).stores_zero_less_one);
  EXPECT_EQ(only(parse(gptq("", "3", "-1"))).group_size, 0);
  EXPECT_TRUE(only(parse(gptq(R"(,"desc_act":true)"))).orders_groups);
  EXPECT_FALSE(only(parse(gptq())).is_symmetric.has_value());
}

TEST(QuantizationConfig, RefusesGptqItCannotRead) {
  expect_error(gptq("", "5"), {"quantization_config.bits", "2, 3, 4 or 8", "found 5"});
  expect_error(gptq("", "4", "0"), {"quantization_config.group_size", "found 0"});
  expect_error(gptq("", "4", "\"x\""), {"quantization_config.group_size", "an integer", "found \"x\""});
  expect_error(R"({"quant_method":"gptq","bits":4})", {"quantization_config.group_size", "found none"});
  expect_error(gptq(R"(,"checkpoint_format":"marlin")"), {"checkpoint_format", "gptq or gptq_v2", "\"marlin\""});
  expect_error(gptq(R"(,"is_marlin_format":true)"), {"is_marlin_format", "null", "true"});
  expect_error(gptq(R"(,"dynamic":{"-:lm_head":{}})"), {"dynamic", "lm_head"});
  expect_error(gptq(R"(,"pack_dtype":"int16")"), {"pack_dtype", "int32", "\"int16\""});
  expect_error(gptq(R"(,"checkpoint_format":"gptq","format":"gptq_v2")"), {"checkpoint_format", "the same as"});
  expect_error(gptq(R"(,"rotation":"hadamard")"), {"rotation", "no such key", "hadamard"});
  EXPECT_TRUE(parse(gptq(R"(,"rotation":null,"dynamic":{},"some_new_switch":false)")).has_value());
}

TEST(QuantizationConfig, ReadsAwqOfTheGemmForm) {
  const CodeGroup group = only(parse(awq(R"(,"version":"GEMM","zero_point":true,"modules_to_not_convert":null)")));
  EXPECT_EQ(group.form, CodeForm::awq);
  EXPECT_EQ(group.group_size, 64);
  EXPECT_FALSE(group.is_symmetric.has_value());
  expect_error(awq(R"(,"version":"gemv")"), {"version", "gemm", "\"gemv\""});
  expect_error(awq(R"(,"desc_act":true)"), {"desc_act", "found true"});
  expect_error(R"({"quant_method":"awq","bits":3,"group_size":64})", {"bits", "expected 4", "found 3"});
}

TEST(QuantizationConfig, ReadsCompressedTensors) {
  const CodeGroup group = only(
      parse(tensors(R"(,"symmetric":false,"observer":"minmax","actorder":"static")", R"(,"input_activations":null)",
                    R"(,"kv_cache_scheme":null,"sparsity_config":{},"transform_config":{},)"
                    R"("quantization_status":"compressed","version":"0.9")")));
  EXPECT_EQ(group.form, CodeForm::packed);
  EXPECT_EQ(group.group_size, 32);
  EXPECT_EQ(group.is_symmetric, false);
  EXPECT_FALSE(group.orders_groups);
  EXPECT_TRUE(only(parse(tensors(R"(,"actorder":"group")"))).orders_groups);
  EXPECT_EQ(only(parse(tensors("", R"(,"format":"int-quantized")"))).form, CodeForm::integers);
  EXPECT_EQ(only(parse(tensors("", R"(,"format":"dense")"))).form, CodeForm::dense);
}

TEST(QuantizationConfig, RefusesCompressedTensorsItCannotRead) {
  const std::string at = "quantization_config.config_groups.group_0.";
  expect_error(tensors("", R"(,"input_activations":{"num_bits":8,"dynamic":true,"strategy":"token"})"),
               {at + "input_activations", "expected null", "num_bits"});
  expect_error(tensors("", R"(,"format":"float-quantized")"), {at + "format", "pack-quantized", "\"float-quantized\""});
  expect_error(tensors(R"(,"block_structure":[128,128])"), {at + "weights.block_structure", "[128,128]"});
  expect_error(tensors(R"(,"dynamic":true)"), {at + "weights.dynamic", "found true"});
  expect_error(tensors(R"(,"actorder":"other")"), {at + "weights.actorder", "\"other\""});
  expect_error(tensors(R"(,"power_of_two":true)"), {at + "weights.power_of_two", "no such key"});
  expect_error(tensors("", "", R"(,"kv_cache_scheme":{"num_bits":8})"),
               {"quantization_config.kv_cache_scheme", "null"});
  expect_error(tensors("", "", R"(,"sparsity_config":{"format":"sparse-24-bitmask"})"),
               {"sparsity_config", "sparse-24"});
  expect_error(tensors("", "", R"(,"transform_config":{"config_groups":{"R1":{}}})"), {"transform_config", "R1"});
  expect_error(R"({"quant_method":"compressed-tensors","config_groups":{}})", {"config_groups", "at least one"});
  expect_error(
      R"({"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":{"W4A16":["Linear"]}})",
      {"config_groups.W4A16", "an object", "[\"Linear\"]"});
}

TEST(QuantizationConfig, RefusesWidthsTypesAndStrategies) {
  const auto weights = [](const std::string& text) {
    return R"({"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":{"g":{"targets":["Linear"],)"
           R"("weights":{)" +
           text + "}}}}";
  };
  const std::string at = "quantization_config.config_groups.g.weights.";
  expect_error(weights(R"("num_bits":9,"strategy":"channel")"), {at + "num_bits", "from 2 to 8", "found 9"});
  expect_error(weights(R"("num_bits":8,"type":"float","strategy":"channel")"), {at + "type", "int", "\"float\""});
  expect_error(weights(R"("num_bits":8,"strategy":"block")"), {at + "strategy", "\"block\""});
  expect_error(weights(R"("num_bits":8,"strategy":"group")"), {at + "group_size", "found 0"});
  expect_error(weights(R"("num_bits":8,"strategy":"channel","group_size":32)"), {at + "group_size", "found 32"});
  EXPECT_TRUE(only(parse(weights(R"("num_bits":8)"))).is_tensor_wide);
  EXPECT_EQ(only(parse(weights(R"("num_bits":8,"group_size":-1)"))).group_size, 0);
}

TEST(QuantizationConfig, NamesTheMethodsItReads) {
  expect_error(R"({"quant_method":"fp8"})",
               {"quantization_config.quant_method", "compressed-tensors, gptq or awq", "\"fp8\""});
  expect_error(R"({"bits":4})", {"quantization_config.quant_method", "found none"});
}

TEST(QuantizationConfig, ListsAreByNameByPatternAndByClass) {  // FAULTS B089
  const auto config = parse(
      R"({"quant_method":"compressed-tensors","format":"pack-quantized","ignore":["lm_head","re:.*layers\\.1\\.mlp.*"],)"
      R"("config_groups":{"a":{"targets":["Linear"],"weights":{"num_bits":4,"strategy":"channel"}},)"
      R"("b":{"targets":["re:.*down_proj$","model.x"],"weights":{"num_bits":8,"strategy":"channel"}}}})");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  const auto bits = [&](const std::string& module, const char* kind = "Linear") {
    const auto group = group_of(*config, module, kind);
    EXPECT_TRUE(group.has_value());
    return *group == nullptr ? 0 : (*group)->bits;
  };
  EXPECT_EQ(bits("model.layers.0.mlp.up_proj"), 4);
  EXPECT_EQ(bits("model.layers.0.mlp.down_proj"), 8);  // by name before by class
  EXPECT_EQ(bits("model.x"), 8);
  EXPECT_EQ(bits("model.layers.1.mlp.down_proj"), 0);
  EXPECT_EQ(bits("lm_head"), 0);
  EXPECT_EQ(bits("model.embed_tokens", "Embedding"), 0);
}

TEST(QuantizationConfig, ListsOfGptqAndAwqArePartsOfNames) {
  const auto config = parse(awq(R"(,"modules_to_not_convert":["lm_head","self_attn.k_proj"])"));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(*group_of(*config, "lm_head", "Linear"), nullptr);
  EXPECT_EQ(*group_of(*config, "model.layers.3.self_attn.k_proj", "Linear"), nullptr);
  EXPECT_NE(*group_of(*config, "model.layers.3.self_attn.q_proj", "Linear"), nullptr);
}

TEST(QuantizationConfig, RefusesPatternsThatAreNone) {
  expect_error(tensors("", "", R"(,"ignore":["re:(unclosed"])"),
               {"regular expression", "re:(unclosed", "does not compile"});
  const auto config = parse(tensors("", "", R"(,"ignore":["re:(a+)+$"])"));
  ASSERT_TRUE(config.has_value());
  const auto group = group_of(*config, std::string(60, 'a') + "b", "Linear");
  ASSERT_FALSE(group.has_value());
  EXPECT_NE(group.error().message.find("too many steps"), std::string::npos);
}

}  // namespace
}  // namespace ctk::graph::hf::test
