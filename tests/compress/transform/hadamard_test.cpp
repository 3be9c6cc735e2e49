// Rotations: orthogonal for every size, folded so that the network computes what it did, refused where they cannot be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compress/transform/methods.h"
#include "compress/transform/residual_stream.h"
#include "compress/transform/rotation.h"
#include "tests/support/graph_builder.h"
#include "tests/support/interpret.h"
#include "tests/support/tiny_decoder.h"

namespace ctk::test {
namespace {

using graph::Graph;
using transform::Request;
using transform::Rotation;

std::vector<double> row_of(const Rotation& rotation, std::size_t i) {
  std::vector<double> unit(rotation.size(), 0.0);
  unit[i] = 1;
  rotation.apply(unit);
  return unit;
}

TEST(Rotation, IsOrthogonalForPowersOfTwoAndOthers) {
  for (const std::size_t size : {1, 2, 9, 12, 64, 576}) {
    const Rotation rotation(size, 5, "test");
    std::vector<std::vector<double>> rows;
    for (std::size_t i = 0; i < size; ++i) rows.push_back(row_of(rotation, i));
    for (std::size_t i = 0; i < size; i += 7) {
      for (std::size_t j = 0; j < size; ++j) {
        double dot = 0;
        for (std::size_t k = 0; k < size; ++k) dot += rows[i][k] * rows[j][k];
        EXPECT_NEAR(dot, i == j ? 1.0 : 0.0, 1e-12) << size << ": " << i << ", " << j;
      }
    }
  }
}

TEST(Rotation, SpreadsOneFeatureOverAllOfAPowerOfTwoAndFollowsTheSeed) {
  const Rotation rotation(64, 5, "test");
  for (const double value : row_of(rotation, 17)) EXPECT_DOUBLE_EQ(std::abs(value), 0.125);  // 1 / sqrt(64)
  EXPECT_EQ(row_of(rotation, 17), row_of(Rotation(64, 5, "test"), 17));
  EXPECT_NE(row_of(rotation, 17), row_of(Rotation(64, 6, "test"), 17));
}

Result<transform::Transformed> turn(const Graph& graph) {
  Request request{graph, {{1, 5}}, {}, nullptr, {}, {}};
  request.seed = 3;
  return transform::find_method("hadamard")->run(request);
}

void expect_same_logits(const Graph& before, const Graph& after) {
  const std::vector<Tensor> inputs{Tensor::of<std::int64_t>({1, 5}, std::vector<std::int64_t>{3, 1, 36, 0, 7})};
  const auto a = interpret(before, inputs), b = interpret(after, inputs);
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_TRUE(b) << b.error().message;
  const auto x = a->outputs[0].values<float>(), y = b->outputs[0].values<float>();
  float largest = 1;
  for (const float value : x) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-5f * largest) << i;
}

TEST(Hadamard, KeepsTheLogitsOfDecodersAndLeavesNormsOfOnes) {
  for (const bool is_other : {false, true}) {
    auto config = tiny_decoder_config();
    config.ties_embeddings = !is_other;
    if (is_other) {  // 24 = 8 * 3, with every bias there is and a scaled embedding
      config.hidden_size = 24;
      config.has_qkv_bias = config.has_output_bias = config.has_mlp_bias = true;
      config.embedding_scale = 4.9;
    }
    const Graph decoder = tiny_decoder(config);
    const auto found = turn(decoder);
    ASSERT_TRUE(found) << found.error().message;
    expect_same_logits(decoder, found->graph);
    for (const graph::NodeId id : found->graph.order()) {
      if (found->graph.node(id).op != graph::Op::RMSNormalization) continue;
      for (const float value : found->graph.value(found->graph.node(id).inputs[1]).constant->values<float>())
        EXPECT_EQ(value, 1.0f);
    }
    const auto& rows = found->rows;
    ASSERT_EQ(rows.size(), 3u);  // the stream, and the heads of two blocks
    EXPECT_EQ(rows[0].layers.substr(0, 24), "residual stream of " + std::to_string(config.hidden_size) + " fe");
    EXPECT_EQ(rows[0].reason, is_other ? "" : "lm_head shared a weight with others and has one of its own now");
    EXPECT_EQ(rows[1].layers, "model.layers.0.self_attn.o_proj");
    EXPECT_EQ(rows[1].where, "model.layers.0.self_attn.v_proj");
  }
}

TEST(Hadamard, SpreadsAnOutlierOfTheEmbedding) {
  Graph decoder = tiny_decoder();
  Tensor& table = *decoder.value(*decoder.find_value("model.embed_tokens.weight")).constant;
  table = table.clone();
  for (std::int64_t token = 0; token < 37; ++token)
    table.mutable_values<float>()[static_cast<std::size_t>(token * 32 + 9)] = 50;
  const auto found = turn(decoder);
  ASSERT_TRUE(found) << found.error().message;
  const auto gather = found->graph.node(*std::ranges::find_if(
      found->graph.order(), [&](graph::NodeId id) { return found->graph.node(id).op == graph::Op::Gather; }));
  float most = 0;
  for (const float value : found->graph.value(gather.inputs[0]).constant->values<float>())
    most = std::max(most, std::abs(value));
  EXPECT_LT(most, 12);  // 50 / sqrt(32) = 8.8, and what the other features (0.3 each) add
  EXPECT_GT(most, 8);
}

TEST(Hadamard, RefusesWhatTakesTheMeanAwayOrReadsSingleFeatures) {
  const auto refusal = transform::find_method("hadamard")->refusal;
  const auto network = [](const std::string& norm, bool has_relu) {
    GraphBuilder b;
    const auto ids = b.input("ids", {5}, DType::i64);
    auto x = b.node("Gather", {b.constant("rows", varied({7, 8}, 1)), ids}, "x");
    if (has_relu) x = b.node("Add", {x, b.node("Relu", {x}, "r")}, "sum");
    const auto n = b.node(norm, {x, b.constant("g", varied({8}, 2))}, "n");
    b.output(b.node("MatMul", {n, b.constant("w", varied({8, 3}, 3))}, "y"));
    return b.graph;
  };
  EXPECT_EQ(refusal(network("RMSNormalization", false)), "");
  const std::string layer_norm = refusal(network("LayerNormalization", false));
  EXPECT_NE(layer_norm.find("LayerNormalization_n (LayerNormalization): takes the mean"), std::string::npos)
      << layer_norm;
  EXPECT_NE(refusal(network("RMSNormalization", true)).find("Relu_r (Relu)"), std::string::npos);
  GraphBuilder b;
  b.output(b.node("Relu", {b.input("x", {2, 2})}, "y"));
  EXPECT_NE(refusal(b.graph).find("expected an embedding"), std::string::npos);
}

}  // namespace
}  // namespace ctk::test
