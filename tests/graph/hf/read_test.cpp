#include "graph/hf/read.h"

#include <algorithm>

#include "graph/floats.h"
#include "tests/graph/hf/write_checkpoint.h"

namespace ctk::graph::hf::test {
namespace {

using Tensors = std::vector<std::pair<std::string, std::vector<std::size_t>>>;

// hidden 8, heads 4 of 2, kv heads 2, ffn 6, vocabulary 5, one layer, tied.
class ReadHf : public Folder {
 protected:
  void SetUp() override {
    Folder::SetUp();
    write_config();
  }
  void write_config(const std::string& more = "") const {
    write("config.json",
          R"({"architectures":["LlamaForCausalLM"],"hidden_size":8,"intermediate_size":6,"num_hidden_layers":1,)"
          R"("num_attention_heads":4,"num_key_value_heads":2,"vocab_size":5,"max_position_embeddings":16,)"
          R"("tie_word_embeddings":true)" +
              more + "}");
  }
  static Tensors tensors() {
    const std::string layer = "model.layers.0.";
    return {{"model.embed_tokens.weight", {5, 8}},       {"model.norm.weight", {8}},
            {layer + "input_layernorm.weight", {8}},     {layer + "post_attention_layernorm.weight", {8}},
            {layer + "self_attn.q_proj.weight", {8, 8}}, {layer + "self_attn.k_proj.weight", {4, 8}},
            {layer + "self_attn.v_proj.weight", {4, 8}}, {layer + "self_attn.o_proj.weight", {8, 8}},
            {layer + "mlp.gate_proj.weight", {6, 8}},    {layer + "mlp.up_proj.weight", {6, 8}},
            {layer + "mlp.down_proj.weight", {8, 6}}};
  }
  void write_weights(const Tensors& list) const { write("model.safetensors", file_of_tensors(list)); }
  Result<Graph> read() const { return read_hf(root_.string()); }
};

TEST_F(ReadHf, ReadsAFolder) {
  write_weights(tensors());
  std::vector<std::string> files;
  const auto graph = read_hf(root_.string(), &files);
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_EQ(files, (std::vector<std::string>{path("config.json"), path("model.safetensors")}));
  ASSERT_EQ(graph->inputs().size(), 1u);
  EXPECT_EQ(to_string(*graph->value(graph->inputs()[0]).shape), "[1,sequence]");
  EXPECT_EQ(to_string(*graph->value(graph->outputs()[0]).shape), "[1,sequence,5]");
}

TEST_F(ReadHf, LeavesMatricesOfSixteenBitsInTheFile) {
  write("model.safetensors", file_of_tensors(tensors(), '\x40', "BF16"));  // 0x4040 is 3
  const auto graph = read();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  std::size_t narrow = 0;
  for (std::uint32_t i = 0; i < graph->value_capacity(); ++i) {
    const Value& value = graph->value(ValueId{i});
    if (!value.constant || !value.name.ends_with(".weight")) continue;
    EXPECT_EQ(value.dtype, DType::f32) << value.name;
    EXPECT_EQ(is_narrow(value), value.constant->shape().size() == 2) << value.name;
    narrow += is_narrow(value);
    EXPECT_EQ(floats_of(value).values<float>()[0], 3.0f) << value.name;
  }
  EXPECT_EQ(narrow, 8u);  // seven of the layer, and the embedding
  ASSERT_FALSE(graph->reader_notes.empty());
  EXPECT_NE(graph->reader_notes[0].find("11 tensors are stored in 16 bits"), std::string::npos);
}

TEST_F(ReadHf, KnowsCheckpointsByTheirConfig) {
  EXPECT_TRUE(is_checkpoint(root_.string()));
  std::filesystem::remove(path("config.json"));
  EXPECT_FALSE(is_checkpoint(root_.string()));
  EXPECT_FALSE(is_checkpoint(path("nothing")));
}

TEST_F(ReadHf, RefusesEveryMissingTensorByName) {
  for (std::size_t i = 0; i < tensors().size(); ++i) {
    Tensors list = tensors();
    const std::string name = list[i].first;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    write_weights(list);
    expect_error(read(), {"expected tensor \"" + name + "\"", "found none"});
  }
}

TEST_F(ReadHf, RefusesEveryTensorOfAnotherShapeThanTheConfigSays) {
  for (std::size_t i = 0; i < tensors().size(); ++i) {
    Tensors list = tensors();
    list[i].second[0] += 1;
    write_weights(list);
    expect_error(read(), {"tensor \"" + list[i].first + "\": expected shape",
                          "by config.json, found [" + std::to_string(list[i].second[0])});
  }
}

TEST_F(ReadHf, RefusesTensorsTheArchitectureDoesNotUse) {
  Tensors list = tensors();
  list.push_back({"model.layers.0.self_attn.q_proj.bias", {8}});
  list.push_back({"model.layers.1.input_layernorm.weight", {8}});
  write_weights(list);
  expect_error(read(), {"found 2 more", "\"model.layers.0.self_attn.q_proj.bias\""});
}

TEST_F(ReadHf, BuffersOfOldVersionsAreNoWeights) {
  Tensors list = tensors();
  list.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {1}});
  write_weights(list);
  EXPECT_TRUE(read().has_value());
}

TEST_F(ReadHf, ATiedHeadThatIsStoredAndDiffersIsSaid) {
  Tensors list = tensors();
  list.push_back({"lm_head.weight", {5, 8}});
  write_weights(list);  // all zero, as the embedding
  auto graph = read();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  const auto says_so = [](const Graph& g) {
    return std::any_of(g.reader_notes.begin(), g.reader_notes.end(),
                       [](const std::string& note) { return note.find("lm_head.weight was left out") == 0; });
  };
  EXPECT_FALSE(says_so(*graph));
  std::string bytes = file_of_tensors(list);
  bytes.back() = 1;
  write("model.safetensors", bytes);
  graph = read();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_TRUE(says_so(*graph));
}

TEST_F(ReadHf, RefusesIntegerWeights) {
  std::string bytes = file_of_tensors(tensors());
  const auto at = bytes.find("\"F32\"", bytes.find("o_proj"));
  bytes.replace(at, 5, "\"I32\"");
  write("model.safetensors", bytes);
  expect_error(read(), {"tensor \"model.layers.0.self_attn.o_proj.weight\"", "expected floats, found i32"});
}

TEST_F(ReadHf, NamesTheFileOfABadConfig) {
  write_weights(tensors());
  write_config(R"(,"head_dim":3)");
  expect_error(read(), {"config.json: head_dim", "found 3"});
}

TEST_F(ReadHf, WorksUnderNamesThatAreNotAscii) {  // FAULTS B087
  const std::filesystem::path odd = root_ / "модель 重み";
  std::filesystem::create_directories(odd);
  write_weights(tensors());
  std::filesystem::rename(path("config.json"), odd / "config.json");
  std::filesystem::rename(path("model.safetensors"), odd / "model.safetensors");
  EXPECT_TRUE(read_hf(odd.string()).has_value());
}

}  // namespace
}  // namespace ctk::graph::hf::test
