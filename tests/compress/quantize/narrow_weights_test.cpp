// A decoder whose matrices are held in 16 bits computes, codes and writes what one of the widened numbers does.
#include <gtest/gtest.h>

#include <cstring>

#include "compress/quantize/apply.h"
#include "compress/sound_constants.h"
#include "export/bundle.h"
#include "export/onnx_float.h"
#include "export/onnx_qdq.h"
#include "graph/floats.h"
#include "runtime/bundle.h"
#include "runtime/cpu_executor.h"
#include "tests/support/tiny_decoder.h"

namespace ctk::quantization {
namespace {

struct Pair {
  graph::Graph narrow, wide;
};

Pair decoders(DType stored, bool is_tied) {
  graph::hf::DecoderConfig config = test::tiny_decoder_config();
  config.ties_embeddings = is_tied;
  Pair pair{test::tiny_decoder(config, stored), {}};
  pair.wide = pair.narrow.clone();
  graph::widen_constants(pair.wide);
  return pair;
}

std::vector<float> logits(const graph::Graph& graph) {
  const std::int64_t ids[] = {3, 36, 0, 7, 11};
  const Tensor input = Tensor::of<std::int64_t>({1, 5}, ids);
  auto executor = runtime::CpuExecutor::create(graph, {input.shape()});
  EXPECT_TRUE(executor.has_value()) << executor.error().message;
  const auto outputs = (*executor)->run(std::span(&input, 1)).value();
  const auto values = outputs[0].values<float>();
  return {values.begin(), values.end()};
}

SchemeMap schemes_of(const graph::Graph& graph, const std::string& name) {
  SchemeMap schemes;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    if (graph.address(layer.node) != "lm_head") schemes[graph.address(layer.node)] = parse_scheme(name).value();
  }
  return schemes;
}

class NarrowWeights : public ::testing::TestWithParam<std::pair<DType, bool>> {};

TEST_P(NarrowWeights, GiveTheSameLogits) {
  const Pair pair = decoders(GetParam().first, GetParam().second);
  ASSERT_TRUE(graph::is_narrow(pair.narrow.value(*pair.narrow.find_value("model.embed_tokens.weight"))));
  EXPECT_EQ(logits(pair.narrow), logits(pair.wide));
}

// Bytes of the data section.
std::size_t data_bytes(const std::string& bundle) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, bundle.data() + 40, sizeof bytes);
  return bytes;
}

TEST_P(NarrowWeights, AreHeldByBundlesAsTheyAre) {
  const Pair pair = decoders(GetParam().first, GetParam().second);
  std::size_t saved = 0;
  const auto stored = [](std::size_t bytes) { return (bytes + 15) / 16 * 16; };
  for (std::size_t i = 0; i < pair.narrow.value_capacity(); ++i) {
    const graph::Value& value = pair.narrow.value(graph::ValueId{static_cast<std::uint32_t>(i)});
    if (!value.is_removed && graph::is_narrow(value))
      saved += stored(4 * value.constant->size()) - stored(2 * value.constant->size());
  }
  const std::string narrow = exporter::bundle_of(pair.narrow), wide = exporter::bundle_of(pair.wide);
  EXPECT_EQ(exporter::bundle_bytes(pair.narrow), narrow.size());
  EXPECT_EQ(data_bytes(wide) - data_bytes(narrow), saved);
  const auto back = runtime::load_bundle_bytes(std::as_bytes(std::span(narrow)), nullptr);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_TRUE(graph::is_narrow(back->value(*back->find_value("model.embed_tokens.weight"))));
  EXPECT_EQ(exporter::bundle_of(*back), narrow);
  EXPECT_EQ(logits(*back), logits(pair.wide));
}

TEST_P(NarrowWeights, GiveTheSameOtherFiles) {
  Pair pair = decoders(GetParam().first, GetParam().second);
  EXPECT_EQ(exporter::onnx_float_of(pair.narrow).value(), exporter::onnx_float_of(pair.wide).value());
  for (const char* scheme : {"w4a16_g32", "fp16"}) {
    graph::Graph narrow = pair.narrow.clone(), wide = pair.wide.clone();
    const auto applied = apply_schemes(narrow, schemes_of(narrow, scheme), {}, {});
    ASSERT_TRUE(applied.has_value()) << applied.error().message;
    ASSERT_TRUE(apply_schemes(wide, schemes_of(wide, scheme), {}, {}).has_value());
    EXPECT_EQ(exporter::onnx_qdq_of(narrow).value(), exporter::onnx_qdq_of(wide).value()) << scheme;
    EXPECT_EQ(logits(narrow), logits(wide)) << scheme;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowWeights,
                         ::testing::Values(std::pair(DType::bf16, false), std::pair(DType::bf16, true),
                                           std::pair(DType::f16, false), std::pair(DType::f16, true)));

TEST(NarrowWeights, LeaveConstantsOfOtherTypesInFilesAsTheyAre) {
  const graph::Graph graph = decoders(DType::bf16, true).narrow;
  const std::string bytes = exporter::bundle_of(graph);
  const auto back = runtime::load_bundle_bytes(std::as_bytes(std::span(bytes)), nullptr);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->value(*back->find_value("axis_0")).constant->dtype(), DType::i64);
  EXPECT_EQ(logits(*back), logits(graph));
}

TEST(NarrowWeights, AreRefusedWhereTheyAreNotFinite) {
  graph::Graph graph = test::tiny_decoder(test::tiny_decoder_config(), DType::bf16);
  graph::Value& value = graph.value(*graph.find_value("model.layers.1.mlp.up_proj.weight"));
  Tensor bad = value.constant->clone();
  static_cast<std::uint16_t*>(bad.mutable_data())[33] = 0x7f80;  // infinity, at [1,1]
  value.constant = bad;
  const Status sound = pipeline::require_sound_constants(graph);
  ASSERT_FALSE(sound.has_value());
  EXPECT_NE(sound.error().message.find("model.layers.1.mlp.up_proj.weight"), std::string::npos);
  EXPECT_NE(sound.error().message.find("[1,1]"), std::string::npos) << sound.error().message;
}

TEST(NarrowWeights, BeyondFp16AreNoHalves) {
  graph::Graph graph = test::tiny_decoder(test::tiny_decoder_config(), DType::bf16);
  graph::Value& value = graph.value(*graph.find_value("model.layers.1.mlp.up_proj.weight"));
  Tensor large = value.constant->clone();
  static_cast<std::uint16_t*>(large.mutable_data())[0] = 0x4880;  // 2^18
  value.constant = large;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    const bool is_it = graph.address(layer.node) == "model.layers.1.mlp.up_proj";
    EXPECT_EQ(infeasible_reason(graph, layer, parse_scheme("fp16").value()).find("262144") != std::string::npos, is_it);
  }
}

}  // namespace
}  // namespace ctk::quantization
