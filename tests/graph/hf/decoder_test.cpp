#include "graph/hf/decoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/interpret.h"

namespace ctk::graph::hf::test {
namespace {

DecoderConfig tiny() {
  DecoderConfig c;
  c.architecture = "LlamaForCausalLM";
  c.hidden_size = 4, c.intermediate_size = 6, c.vocab_size = 5, c.layers = 2;
  c.heads = 2, c.kv_heads = 1, c.head_dim = 2, c.max_positions = 16;
  c.ties_embeddings = true;
  return c;
}

// Ones for every weight asked for, remembered by name.
struct Ones {
  std::map<std::string, Tensor> given;
  TensorLookup lookup() {
    return [this](const std::string& name, const Shape& shape) -> Result<Tensor> {
      Tensor tensor = Tensor::zeros(DType::f32, shape).value();
      for (float& w : tensor.mutable_values<float>()) w = 1.0f;
      EXPECT_TRUE(given.emplace(name, tensor).second) << name << " was asked for twice";
      return tensor;
    };
  }
};

NodeId find_node(const Graph& graph, const std::string& name) {
  for (NodeId id : graph.order()) {
    if (graph.address(id) == name) return id;
  }
  ADD_FAILURE() << "no node " << name;
  return {};
}

TEST(BuildDecoder, NamesNodesAndWeightsAsTheCheckpointDoes) {
  Ones ones;
  const auto graph = build_decoder(tiny(), ones.lookup());
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  const Node& q = graph->node(find_node(*graph, "model.layers.1.self_attn.q_proj"));
  EXPECT_EQ(q.op, Op::Gemm);
  EXPECT_EQ(graph->value(q.inputs[1]).name, "model.layers.1.self_attn.q_proj.weight");
  const Node& attention = graph->node(find_node(*graph, "model.layers.1.self_attn"));
  EXPECT_EQ(attention.op, Op::Attention);
  EXPECT_EQ(attention.attributes.get_int("q_num_heads", 0), 2);
  EXPECT_EQ(attention.attributes.get_int("kv_num_heads", 0), 1);
}

TEST(BuildDecoder, WeightsAreTheGivenBytesAndATiedHeadIsTheEmbedding) {
  Ones ones;
  const auto graph = build_decoder(tiny(), ones.lookup());
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  for (const auto& [name, tensor] : ones.given) {
    const auto id = graph->find_value(name);
    ASSERT_TRUE(id.has_value()) << name;
    EXPECT_EQ(graph->value(*id).constant->data(), tensor.data()) << name;
  }
  EXPECT_EQ(graph->value(graph->node(find_node(*graph, "lm_head")).inputs[1]).name, "model.embed_tokens.weight");
  EXPECT_FALSE(ones.given.contains("lm_head.weight"));
  EXPECT_EQ(ones.given.size(), 2u + 2u * 9u);
}

TEST(BuildDecoder, WorksOneLayerByHand) {
  // One head of size 2 and one token: attention gives the value row, whatever q and k. All weights 1, embedding 3, 3
  // and epsilon 0: the norm gives 1, 1; v = 2, 2; o = 4, 4; residual 7, 7; norm 1, 1; gate and up 2 each (one element);
  // silu(2) * 2 = 4 / (1 + exp(-2)) = 3.5231884; residual 10.5231884 twice; norm 1, 1; the head's row 3, 3 gives 6.
  DecoderConfig c = tiny();
  c.hidden_size = 2, c.intermediate_size = 1, c.vocab_size = 1, c.layers = 1, c.heads = 1, c.norm_epsilon = 0.0;
  Ones ones;
  const TensorLookup ask = ones.lookup();
  const TensorLookup lookup = [&](const std::string& name, const Shape& shape) -> Result<Tensor> {
    CTK_TRY(Tensor tensor, ask(name, shape));
    if (name == "model.embed_tokens.weight") {
      for (float& w : tensor.mutable_values<float>()) w = 3.0f;
    }
    return tensor;
  };
  const auto graph = build_decoder(c, lookup);
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  const auto ran = ctk::test::interpret(*graph, {Tensor::of<std::int64_t>({1, 1}, std::vector<std::int64_t>{0})});
  ASSERT_TRUE(ran.has_value()) << ran.error().message;
  EXPECT_NEAR(ran->values.at("model.layers.0.attention_residual.output").values<float>()[0], 7.0f, 1e-6f);
  EXPECT_NEAR(ran->values.at("model.layers.0.mlp_residual.output").values<float>()[1], 10.5231884f, 1e-5f);
  EXPECT_EQ(ran->outputs[0].shape(), (Shape{1, 1, 1}));
  EXPECT_NEAR(ran->outputs[0].values<float>()[0], 6.0f, 1e-6f);
}

TEST(BuildDecoder, TablesStopAtTheWindowOrAt8192AndSaySo) {
  DecoderConfig c = tiny();
  EXPECT_EQ(position_rows(c), 16);
  c.max_positions = 131072;
  EXPECT_EQ(position_rows(c), 8192);
  c.sliding_window = 4096;
  EXPECT_EQ(position_rows(c), 4096);
  Ones ones;
  const auto graph = build_decoder(c, ones.lookup());
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  ASSERT_FALSE(graph->reader_notes.empty());
  EXPECT_NE(graph->reader_notes[0].find("up to 4096 tokens, of 131072"), std::string::npos) << graph->reader_notes[0];
}

TEST(BuildDecoder, LongerSequencesThanTheTableAreRefused) {
  Ones ones;
  const auto graph = build_decoder(tiny(), ones.lookup());
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  const auto ran = ctk::test::interpret(*graph, {Tensor::zeros(DType::i64, {1, 17}).value()});
  ASSERT_FALSE(ran.has_value());
  EXPECT_NE(ran.error().message.find("below 16"), std::string::npos) << ran.error().message;
}

TEST(BuildDecoder, RefusesNumbersThatDoNotFit) {
  const auto message = [](auto change) {
    DecoderConfig c = tiny();
    change(c);
    Ones ones;
    const auto graph = build_decoder(c, ones.lookup());
    EXPECT_TRUE(ones.given.empty());  // before any weight is asked for
    return graph ? "" : graph.error().message;
  };
  EXPECT_NE(message([](DecoderConfig& c) { c.heads = 4, c.kv_heads = 3; }).find("num_key_value_heads"),
            std::string::npos);
  EXPECT_NE(message([](DecoderConfig& c) { c.head_dim = 3; }).find("head_dim: expected an even number"),
            std::string::npos);
  EXPECT_NE(message([](DecoderConfig& c) { c.vocab_size = std::int64_t{1} << 40; }).find("vocab_size"),
            std::string::npos);
  for (const double epsilon : {-1.0, std::nan(""), 1.0})
    EXPECT_NE(message([&](DecoderConfig& c) { c.norm_epsilon = epsilon; }).find("epsilon"), std::string::npos);
  EXPECT_NE(message([](DecoderConfig& c) { c.layers = 0; }).find("num_hidden_layers"), std::string::npos);
}

}  // namespace
}  // namespace ctk::graph::hf::test
