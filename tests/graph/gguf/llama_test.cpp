#include "graph/gguf/llama.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/gguf/write.h"
#include "tests/graph/gguf/small_file.h"

namespace ctk::graph::gguf {
namespace {

// heads / kv_heads differs from kv_heads, which a permutation by the wrong count would hide.
constexpr std::int64_t kHidden = 64, kHeads = 8, kKvHeads = 2, kHeadDim = 8, kFfn = 96, kVocabulary = 5;

struct Model {
  std::map<std::string, double> numbers{{"llama.context_length", 32},
                                        {"llama.embedding_length", kHidden},
                                        {"llama.block_count", 1},
                                        {"llama.feed_forward_length", kFfn},
                                        {"llama.attention.head_count", kHeads},
                                        {"llama.attention.head_count_kv", kKvHeads}};
  std::map<std::string, float> reals{{"llama.attention.layer_norm_rms_epsilon", 1e-5f}, {"llama.rope.freq_base", 5e4f}};
  std::string architecture = "llama";
  std::vector<std::string> tokens{"a", "b", "c", "d", "e"};
  // Every element of row r of a matrix is r, so that its order can be read off.
  std::map<std::string, Shape> tensors{{"token_embd.weight", {kVocabulary, kHidden}},
                                       {"output_norm.weight", {kHidden}},
                                       {"blk.0.attn_norm.weight", {kHidden}},
                                       {"blk.0.ffn_norm.weight", {kHidden}},
                                       {"blk.0.attn_q.weight", {kHeads * kHeadDim, kHidden}},
                                       {"blk.0.attn_k.weight", {kKvHeads * kHeadDim, kHidden}},
                                       {"blk.0.attn_v.weight", {kKvHeads * kHeadDim, kHidden}},
                                       {"blk.0.attn_output.weight", {kHidden, kHeads* kHeadDim}},
                                       {"blk.0.ffn_gate.weight", {kFfn, kHidden}},
                                       {"blk.0.ffn_up.weight", {kFfn, kHidden}},
                                       {"blk.0.ffn_down.weight", {kHidden, kFfn}}};

  Result<Graph> read() const {
    Metadata keys;
    keys.set_text("general.architecture", architecture);
    for (const auto& [key, value] : numbers) keys.set_u32(key, static_cast<std::uint32_t>(value));
    for (const auto& [key, value] : reals) keys.set_f32(key, value);
    keys.set_texts("tokenizer.ggml.tokens", tokens);
    std::vector<TensorToWrite> written;
    for (const auto& [name, shape] : tensors) {
      std::vector<float> values(elements(shape));
      const std::size_t row = values.size() / static_cast<std::size_t>(shape[0]);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / row);
      written.push_back({name, find_block_type("F32"), shape,
                         [values](const Sink& sink) { return sink(std::as_bytes(std::span(values))); }});
    }
    std::string text;
    EXPECT_TRUE(write(keys, written, [&](std::span<const std::byte> piece) -> Status {
                  text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
                  return {};
                }).has_value());
    const auto file = test::parse(text);
    EXPECT_TRUE(file.has_value());
    return read_decoder(*file);
  }

  std::string refusal() const {
    const auto graph = read();
    EXPECT_FALSE(graph.has_value());
    return graph ? "" : graph.error().message;
  }
};

std::vector<float> first_column(const Graph& graph, const std::string& name) {
  const Tensor& tensor = *graph.value(graph.find_value(name).value()).constant;
  std::vector<float> out;
  const std::size_t row = tensor.size() / static_cast<std::size_t>(tensor.shape()[0]);
  for (std::size_t r = 0; r < static_cast<std::size_t>(tensor.shape()[0]); ++r)
    out.push_back(tensor.values<float>()[r * row]);
  return out;
}

TEST(GgufLlama, RowsOfQAndKComeBackInHalves) {
  const auto graph = Model().read();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  // Head 1 begins at row 8: its even rows in the file are the first half, its odd rows the second.
  const std::vector<float> q = first_column(*graph, "model.layers.0.self_attn.q_proj.weight");
  ASSERT_EQ(q.size(), 64u);
  EXPECT_EQ(std::vector<float>(q.begin() + 8, q.begin() + 16), (std::vector<float>{8, 10, 12, 14, 9, 11, 13, 15}));
  const std::vector<float> k = first_column(*graph, "model.layers.0.self_attn.k_proj.weight");
  EXPECT_EQ(k, (std::vector<float>{0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15}));
  const std::vector<float> v = first_column(*graph, "model.layers.0.self_attn.v_proj.weight");
  EXPECT_TRUE(std::ranges::is_sorted(v));
}

TEST(GgufLlama, OtherArchitecturesKeepTheirRows) {
  Model model;
  model.architecture = "qwen2";
  std::map<std::string, double> numbers;
  for (const auto& [key, value] : model.numbers) numbers["qwen2" + key.substr(5)] = value;
  model.numbers = numbers;
  model.reals = {{"qwen2.attention.layer_norm_rms_epsilon", 1e-6f}};
  for (const char* name : {"q", "k", "v"})
    model.tensors["blk.0.attn_" + std::string(name) + ".bias"] = {(name[0] == 'q' ? kHeads : kKvHeads) * kHeadDim};
  const auto graph = model.read();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_TRUE(std::ranges::is_sorted(first_column(*graph, "model.layers.0.self_attn.q_proj.weight")));
  EXPECT_TRUE(graph->find_value("model.layers.0.self_attn.k_proj.bias").has_value());
}

TEST(GgufLlama, AHeadOfItsOwnIsReadAndATiedOneIsNot) {
  Model model;
  EXPECT_FALSE(model.read()->find_value("lm_head.weight").has_value());
  model.tensors["output.weight"] = {kVocabulary, kHidden};
  EXPECT_TRUE(model.read()->find_value("lm_head.weight").has_value());
}

TEST(GgufLlama, RefusesFrequencyFactorsThatDivideByZero) {
  Model model;
  model.tensors["rope_freqs.weight"] = {kHeadDim / 2};  // 0, 1, 2, 3
  EXPECT_NE(model.refusal().find("finite numbers above 0"), std::string::npos);
  model.tensors["rope_freqs.weight"] = {kHeadDim};
  EXPECT_NE(model.refusal().find("expected 4 numbers, found 8"), std::string::npos);
}

TEST(GgufLlama, RefusesWhatItDoesNotUnderstand) {
  Model model;
  model.architecture = "falcon";
  EXPECT_NE(model.refusal().find("expected one of llama, qwen2, qwen3, gemma, found \"falcon\""), std::string::npos);
  model = {};
  model.numbers["llama.expert_count"] = 0;
  EXPECT_TRUE(model.read().has_value());
  model.numbers["llama.expert_count"] = 8;
  EXPECT_NE(model.refusal().find("\"llama.expert_count\": expected a key this reader understands"), std::string::npos);
  model = {};
  model.numbers["llama.rope.dimension_count"] = 4;
  EXPECT_NE(model.refusal().find("expected the head size 8, found 4"), std::string::npos);
}

TEST(GgufLlama, RefusesNumbersThatDoNotFit) {
  Model model;
  model.numbers["llama.attention.head_count_kv"] = 3;
  EXPECT_NE(model.refusal().find("divisor"), std::string::npos);
  model = {};
  model.numbers["llama.attention.head_count_kv"] = 0;
  EXPECT_FALSE(model.refusal().empty());
  model = {};
  model.numbers["llama.block_count"] = 4294967295.0;
  EXPECT_FALSE(model.refusal().empty());
  model = {};
  model.numbers.erase("llama.embedding_length");
  EXPECT_NE(model.refusal().find("\"llama.embedding_length\": expected an integer of at least 0, found no such key"),
            std::string::npos);
  model = {};
  model.tokens.pop_back();
  EXPECT_NE(model.refusal().find("expected 5 tokens"), std::string::npos);
}

TEST(GgufLlama, RefusesTensorsThatDoNotFit) {
  Model model;
  model.tensors.erase("blk.0.ffn_up.weight");
  EXPECT_NE(
      model.refusal().find("expected a tensor \"blk.0.ffn_up.weight\" (model.layers.0.mlp.up_proj.weight), found none"),
      std::string::npos);
  model = {};
  model.tensors["blk.0.ffn_up.weight"] = {kFfn + 1, kHidden};
  EXPECT_NE(model.refusal().find("found [97,64]"), std::string::npos);
  model = {};
  model.tensors["blk.0.extra.weight"] = {1};
  EXPECT_NE(model.refusal().find("1 more, the first \"blk.0.extra.weight\""), std::string::npos);
  model = {};
  model.tensors.erase("token_embd.weight");
  EXPECT_NE(model.refusal().find("\"token_embd.weight\""), std::string::npos);
}

}  // namespace
}  // namespace ctk::graph::gguf
