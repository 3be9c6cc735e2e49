#include "export/gguf.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/file.h"
#include "core/random.h"
#include "graph/gguf/llama.h"
#include "graph/hf/config.h"
#include "graph/passes/passes.h"
#include "tests/export/round_weights.h"
#include "tests/graph/hf/write_checkpoint.h"

namespace ctk::exporter {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

// heads 8, kv heads 2, head size 8, hidden 64, feed-forward 96, vocabulary 6, one layer.
constexpr const char* kConfig = R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,
  "intermediate_size":96,"num_hidden_layers":1,"num_attention_heads":8,"num_key_value_heads":2,"vocab_size":6,
  "max_position_embeddings":32,"rms_norm_eps":1e-5,"tie_word_embeddings":true,"hidden_act":"silu","bos_token_id":1,
  "eos_token_id":[2,3]})";
constexpr const char* kTokenizer = R"({"added_tokens":[{"id":1,"content":"<s>","special":true},
  {"id":2,"content":"<user>","special":false}],"normalizer":null,"pre_tokenizer":{"type":"Sequence","pretokenizers":[
  {"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]},
  "model":{"type":"BPE","byte_fallback":false,"vocab":{"a":0,"b":3,"ab":4},"merges":["a b"]}})";

class GgufExport : public graph::hf::test::Folder {
 protected:
  void SetUp() override {
    Folder::SetUp();
    write("config.json", kConfig);
    write("tokenizer.json", kTokenizer);
    build();
  }

  void build() {
    const auto read = graph::hf::read_config(path("config.json"));
    ASSERT_TRUE(read.has_value()) << read.error().message;
    Random random(7, "decoder");
    auto graph = build_decoder(std::get<graph::hf::DecoderConfig>(read->model),
                               [&](const std::string&, const Shape& shape) -> Result<Tensor> {
                                 Tensor tensor = Tensor::zeros(DType::f32, shape).value();
                                 for (float& w : tensor.mutable_values<float>())
                                   w = static_cast<float>(random.normal());
                                 return tensor;
                               });
    ASSERT_TRUE(graph.has_value()) << graph.error().message;
    graph_ = std::move(*graph);
  }

  Node& node(const std::string& name) {
    for (NodeId id : graph_.order()) {
      if (graph_.node(id).name == name) return graph_.node(id);
    }
    ADD_FAILURE() << "no node " << name;
    return graph_.node(graph_.order()[0]);
  }

  void quantize(const std::string& module, const std::string& scheme, bool rounds_scales = true) {
    graph::Value& value = graph_.value(node(module).inputs[1]);
    value.quantized = std::make_shared<const QuantTensor>(
        test::round_weights(*value.constant, parse_scheme(scheme).value(), rounds_scales));
    value.constant.reset();
  }

  graph::gguf::File written(const std::string& model = "") {
    const auto bytes = gguf_of(graph_, model.empty() ? root_.string() : model);
    EXPECT_TRUE(bytes.has_value()) << (bytes ? "" : bytes.error().message);
    auto held = std::make_shared<std::string>(bytes ? *bytes : "");
    auto file = graph::gguf::File::parse(std::as_bytes(std::span(*held)), held);
    EXPECT_TRUE(file.has_value()) << (file ? "" : file.error().message);
    return *file;
  }

  void expect_refused(const std::vector<std::string>& words) { expect_error(gguf_of(graph_, root_.string()), words); }

  // Every constant of the decoder, codes dequantized, by name.
  static std::map<std::string, std::vector<float>> weights(const Graph& graph) {
    std::map<std::string, std::vector<float>> out;
    for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
      const graph::Value& value = graph.value(ValueId{static_cast<std::uint32_t>(i)});
      if (!value.is_constant() || value.dtype != DType::f32) continue;
      const Tensor tensor = value.quantized != nullptr ? dequantize(*value.quantized) : *value.constant;
      out[value.name].assign(tensor.values<float>().begin(), tensor.values<float>().end());
    }
    return out;
  }

  Graph graph_;
};

TEST_F(GgufExport, EveryWeightReadsBackAsTheGraphComputesWithIt) {
  quantize("model.layers.0.self_attn.q_proj", "w4a16_g32");
  quantize("model.layers.0.self_attn.k_proj", "w8a16_g32");
  quantize("model.layers.0.self_attn.v_proj", "w4a8_g64");
  quantize("model.layers.0.mlp.down_proj", "w4a16_g64");  // 96 columns: the last group has 32
  quantize("model.layers.0.mlp.up_proj", "w4a16_c");
  const graph::gguf::File file = written();
  const auto back = graph::gguf::read_decoder(file);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(weights(*back), weights(graph_));
  EXPECT_EQ(file.find_tensor("blk.0.attn_q.weight")->type->name, "Q4_0");
  EXPECT_EQ(file.find_tensor("blk.0.attn_k.weight")->type->name, "Q8_0");
  EXPECT_EQ(file.find_tensor("blk.0.ffn_up.weight")->type->name, "Q4_0");
  EXPECT_EQ(file.find_tensor("blk.0.attn_norm.weight")->type->name, "F32");
}

TEST_F(GgufExport, PassesLeaveADecoderThatCanBeWritten) {
  const auto before = weights(*graph::gguf::read_decoder(written()));
  ASSERT_TRUE(graph::run_passes(graph_).has_value());
  EXPECT_EQ(weights(*graph::gguf::read_decoder(written())), before);
}

// Head 1, row 8 + 2 i + half of the file is row 8 + 4 half + i of the graph: worked by hand for head size 8.
TEST_F(GgufExport, RowsOfQAreInterleaved) {
  const graph::gguf::File file = written();
  const Tensor q = file.floats(*file.find_tensor("blk.0.attn_q.weight")).value();
  const Tensor& own = *graph_.value(node("model.layers.0.self_attn.q_proj").inputs[1]).constant;
  const std::size_t expected[8] = {8, 12, 9, 13, 10, 14, 11, 15};
  for (std::size_t r = 0; r < 8; ++r)
    EXPECT_EQ(q.values<float>()[(8 + r) * 64], own.values<float>()[expected[r] * 64]) << r;
}

TEST_F(GgufExport, ATiedHeadIsNotWrittenTwice) {
  EXPECT_EQ(written().find_tensor("output.weight"), nullptr);
  // A head with codes of its own beside a float embedding is another matrix.
  Node& head = node("lm_head");
  const ValueId copy = graph_.add_constant("head_copy", *graph_.value(head.inputs[1]).constant);
  for (NodeId id : graph_.order()) {
    if (graph_.node(id).name == "lm_head") graph_.set_input(id, 1, copy);
  }
  quantize("lm_head", "w8a16_g32");
  const graph::gguf::File file = written();
  ASSERT_NE(file.find_tensor("output.weight"), nullptr);
  EXPECT_EQ(file.find_tensor("output.weight")->type->name, "Q8_0");
  EXPECT_EQ(file.find_tensor("token_embd.weight")->type->name, "F32");
}

TEST_F(GgufExport, FloatsThatAreHalvesTakeTwoBytes) {
  graph::Value& value = graph_.value(node("model.layers.0.mlp.gate_proj").inputs[1]);
  Tensor halves = value.constant->clone();
  for (float& w : halves.mutable_values<float>()) w = half_to_float(float_to_half(w));
  value.constant = halves;
  const graph::gguf::File file = written();
  EXPECT_EQ(file.find_tensor("blk.0.ffn_gate.weight")->type->name, "F16");
  EXPECT_EQ(file.find_tensor("blk.0.ffn_up.weight")->type->name, "F32");
  EXPECT_EQ(weights(*graph::gguf::read_decoder(file)), weights(graph_));
}

TEST_F(GgufExport, RefusesSchemesNoBlockHolds) {
  quantize("model.layers.0.mlp.down_proj", "w4a16_g16");
  expect_refused({"\"model.layers.0.mlp.down_proj.weight\"", "scheme w4a16_g16", "multiple of 32", "Q4_0"});
  build();
  quantize("model.layers.0.mlp.up_proj", "w4a16_g32", false);
  expect_refused({"\"model.layers.0.mlp.up_proj.weight\"", "scales that are fp16 numbers"});
}

// 172 is no multiple of 32.
TEST_F(GgufExport, WritesCodedRowsThatAreNoWholeBlocksAsTheirFloats) {
  std::string config = kConfig;
  write("config.json", config.replace(config.find("\"intermediate_size\":96"), 22, "\"intermediate_size\":172"));
  build();
  EXPECT_EQ(written().find_tensor("blk.0.ffn_down.weight")->type->name, "F32");
  quantize("model.layers.0.mlp.down_proj", "w4a16_g32");
  EXPECT_EQ(written().find_tensor("blk.0.ffn_down.weight")->type->name, "F32");
  EXPECT_EQ(weights(*graph::gguf::read_decoder(written())), weights(graph_));
  ASSERT_EQ(gguf_notes(graph_).size(), 1u);
  EXPECT_NE(gguf_notes(graph_)[0].find("float32, with the same numbers: model.layers.0.mlp.down_proj"),
            std::string::npos);
}

TEST_F(GgufExport, RefusesNumbersThatAreNotFinite) {
  graph::Value& value = graph_.value(node("model.layers.0.mlp.up_proj").inputs[1]);
  Tensor bad = value.constant->clone();
  bad.mutable_values<float>()[197] = std::numeric_limits<float>::quiet_NaN();
  bad.mutable_values<float>()[300] = std::numeric_limits<float>::infinity();
  value.constant = bad;
  expect_refused({"\"model.layers.0.mlp.up_proj.weight\"", "found 2 that are not, the first at 197"});
}

TEST_F(GgufExport, RefusesAGraphThatIsNoPlainDecoder) {
  Node scale;
  scale.op_type = "Mul";
  scale.name = "smooth";
  scale.inputs = {node("model.layers.0.input_layernorm").outputs[0],
                  graph_.add_constant("factor", Tensor::scalar(0.5f))};
  scale.outputs = {graph_.add_value("smoothed", DType::f32)};
  graph_.add_node(scale);
  expect_refused({"node \"smooth\" (Mul)"});
  expect_error(gguf_of(Graph(), root_.string()), {"\"model.embed_tokens\"", "found none"});
  expect_error(gguf_of(graph_, ""), {"found none"});
}

TEST_F(GgufExport, WritesTheTokenizer) {
  const graph::gguf::File file = written();
  EXPECT_EQ(file.text("tokenizer.ggml.model").value(), "gpt2");
  EXPECT_EQ(file.text("tokenizer.ggml.pre").value(), "smollm");
  EXPECT_EQ(file.texts("tokenizer.ggml.tokens").value(),
            (std::vector<std::string_view>{"a", "<s>", "<user>", "b", "ab", "[PAD5]"}));
  EXPECT_EQ(file.integers("tokenizer.ggml.token_type").value(), (std::vector<std::int64_t>{1, 3, 4, 1, 1, 5}));
  EXPECT_EQ(file.texts("tokenizer.ggml.merges").value(), (std::vector<std::string_view>{"a b"}));
  EXPECT_EQ(file.integer("tokenizer.ggml.bos_token_id").value(), 1u);
  EXPECT_EQ(file.integer("tokenizer.ggml.eos_token_id").value(), 2u);
  EXPECT_FALSE(file.truth("tokenizer.ggml.add_bos_token").value());
}

TEST_F(GgufExport, RefusesTokenizersWithoutAName) {
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kTokenizer;
    write("tokenizer.json", text.replace(text.find(from), from.size(), to));
  };
  with("\"normalizer\":null", "\"normalizer\":{\"type\":\"Lowercase\"}");
  expect_refused({"tokenizer.json: normalizer", "Lowercase"});
  with("\"type\":\"Digits\"", "\"type\":\"Punctuation\"");
  expect_refused({"tokenizer.json: pre_tokenizer"});
  with("\"ab\":4", "\"ab\":6");
  expect_refused({"token \"ab\"", "below the 6 rows"});
  with("\"ab\":4", "\"ab\":3");
  expect_refused({"every id once"});
  with("\"BPE\"", "\"WordPiece\"");
  expect_refused({"model.type"});
}

// From GGUF to GGUF: metadata stays byte for byte.
TEST_F(GgufExport, KeepsTheMetadataOfAGgufModel) {
  quantize("model.layers.0.self_attn.q_proj", "w4a16_g32");
  ASSERT_TRUE(write_gguf(graph_, root_.string(), path("first.gguf")).has_value());
  const auto again = gguf_of(graph_, path("first.gguf"));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  const auto first = read_text(path("first.gguf"));
  const graph::gguf::File a = written(), b = written(path("first.gguf"));
  ASSERT_EQ(a.keys().size(), b.keys().size());
  for (std::string_view key : a.keys()) {
    ASSERT_NE(b.find(key), nullptr) << key;
    EXPECT_TRUE(std::ranges::equal(a.find(key)->bytes, b.find(key)->bytes)) << key;
  }
  EXPECT_EQ(first->size(), again->size());
}

}  // namespace
}  // namespace ctk::exporter
