// SmoothQuant on networks with one loud feature.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compress/transform/methods.h"
#include "graph/layer.h"
#include "tests/support/made_rows.h"

namespace ctk::test {
namespace {

using graph::Graph;
using transform::Request;

constexpr std::size_t kSamples = 24;

// x [N, 16] times 40 in feature 5, normed or not, read by two layers.
Graph loud_network(bool has_residual) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 16});
  Floats scale(16, 1.0f);
  scale[5] = 40.0f;
  const auto loud = b.node("Mul", {x, b.constant("scale", floats({16}, scale))}, "loud");
  const auto y = b.node("MatMul", {loud, b.constant("w", varied({16, 16}, 2))}, "y");
  b.output(b.node("MatMul", {loud, b.constant("v", varied({16, 8}, 3))}, "z"));
  b.output(has_residual ? b.node("Add", {y, loud}, "sum") : y);
  return b.graph;
}

Result<transform::Transformed> smooth(const Graph& graph, const data::Split& split, bool insert_mul = true,
                                      std::optional<double> strength = {}) {
  Request request{graph, {{1, 16}}, {}, &split, {}, strength};
  const QuantScheme scheme = *parse_scheme("w8a8_c");
  for (const graph::Layer& layer : graph::layers_of(graph)) request.schemes[graph.address(layer.node)] = scheme;
  request.insert_mul = insert_mul;
  return transform::find_method("smoothquant")->run(request);
}

TEST(SmoothQuantTransform, QuietsTheLoudFeatureForAllWhoReadIt) {
  const Graph graph = loud_network(false);
  const data::Split split = made_split(graph, {16}, kSamples);
  const auto found = smooth(graph, split);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->rows.size(), 1u);
  const exporter::TransformRow& row = found->rows[0];
  EXPECT_EQ(row.layers, "MatMul_y, MatMul_z");
  EXPECT_EQ(row.where, "Mul_loud");
  // Steps of 80 / 255 fall on features of reach 1: with even reach the steps are some tenth of that.
  EXPECT_LT(*row.error_after, 0.1 * *row.error_before);
  EXPECT_GT(*row.strength, 0.0);
  const Tensor input = varied({3, 16}, 77);
  const auto before = interpret(graph, {input}), after = interpret(found->graph, {input});
  ASSERT_TRUE(before && after);
  const auto loud = after->values.at("loud").values<float>();
  float most = 0, least = 1e9f;
  for (std::size_t f = 0; f < 16; ++f) {
    const float reach = std::max({std::abs(loud[f]), std::abs(loud[16 + f]), std::abs(loud[32 + f])});
    most = std::max(most, reach);
    least = std::min(least, reach);
  }
  EXPECT_LT(most / least, 20);
  for (std::size_t i = 0; i < before->outputs[0].size(); ++i)
    EXPECT_NEAR(before->outputs[0].values<float>()[i], after->outputs[0].values<float>()[i], 1e-3);
}

TEST(SmoothQuantTransform, SaysWhereAMulWasPutInAndWhereNoneMayBe) {
  const Graph graph = loud_network(true);
  const data::Split split = made_split(graph, {16}, kSamples);
  const auto with = smooth(graph, split), without = smooth(graph, split, false);
  ASSERT_TRUE(with && without);
  EXPECT_EQ(with->rows[0].where, "a Mul of its own");
  EXPECT_EQ(with->rows[0].reason, "Add_sum also reads it");
  EXPECT_EQ(count_ops(with->graph, graph::Op::Mul), 2);
  EXPECT_EQ(without->rows[0].where, "");
  EXPECT_EQ(without->rows[0].reason, "Add_sum also reads it; no Mul may be put in");
  EXPECT_EQ(count_ops(without->graph, graph::Op::Mul), 1);
}

TEST(SmoothQuantTransform, TakesTheStrengthItIsGivenAndOnlyLayersOfCodedActivations) {
  const Graph graph = loud_network(false);
  const data::Split split = made_split(graph, {16}, kSamples);
  const auto found = smooth(graph, split, true, 0.5);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(*found->rows[0].strength, 0.5);
  Request request{graph, {{1, 16}}, {{"MatMul_y", *parse_scheme("w4a16_c")}}, &split, {}, {}};
  const auto none = transform::find_method("smoothquant")->run(request);
  ASSERT_TRUE(none);
  ASSERT_EQ(none->rows.size(), 1u);
  EXPECT_EQ(none->rows[0].layers, "MatMul_y");
  EXPECT_EQ(none->rows[0].reason, "its activations stay floats");
}

TEST(SmoothQuantTransform, LeavesFeaturesOfZerosAndConstantInputsFinite) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 16});
  Floats scale(16, 1.0f);
  scale[3] = 0.0f;
  const auto n = b.node("Mul", {x, b.constant("scale", floats({16}, scale))}, "n");
  Tensor w = varied({16, 4}, 2);
  for (std::size_t i = 0; i < 4; ++i) w.mutable_values<float>()[7 * 4 + i] = 0.0f;
  b.output(b.node("MatMul", {n, b.constant("w", w)}, "y"));
  const data::Split split = made_split(b.graph, {16}, kSamples);
  const auto found = smooth(b.graph, split, true, 0.5);
  ASSERT_TRUE(found) << found.error().message;
  for (const char* name : {"scale", "w"}) {
    for (const float value : found->graph.value(*found->graph.find_value(name)).constant->values<float>())
      EXPECT_TRUE(std::isfinite(value)) << name;
  }
}

}  // namespace
}  // namespace ctk::test
