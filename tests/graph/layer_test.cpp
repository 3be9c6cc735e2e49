#include "graph/layer.h"

#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

using graph::Layer;
using graph::ValueId;

std::optional<Layer> layer_at(const GraphBuilder& b, const std::string& output, std::string* why = nullptr) {
  return graph::layer_of(b.graph, producer_of(b.graph, output), why);
}

GraphBuilder one_layer(const std::string& op, const Shape& input, const Shape& weight, const Attrs& attributes = {},
                       const Shape& bias = {-1}) {
  GraphBuilder b;
  std::vector<ValueId> inputs = {b.input("x", input), b.constant("w", varied(weight))};
  if (bias != Shape{-1}) inputs.push_back(b.constant("b", varied(bias)));
  b.output(b.node(op, inputs, "y", attributes));
  return b;
}

TEST(LayerOf, PutsChannelsOfConvOnDimension0) {
  const auto layer = layer_at(one_layer("Conv", {1, 3, 8, 8}, {5, 3, 2, 4}, {}, {5}), "y");
  ASSERT_TRUE(layer);
  EXPECT_EQ(layer->channel_axis, 0);
  EXPECT_EQ(layer->channels, 5);
  EXPECT_EQ(layer->reduction, 3 * 2 * 4);
  EXPECT_TRUE(layer->bias.is_valid());
  EXPECT_FALSE(layer->is_depthwise);
}

TEST(LayerOf, SeesDepthwiseConv) {
  const Attrs group = {{"group", std::int64_t{6}}};
  EXPECT_TRUE(layer_at(one_layer("Conv", {1, 6, 8, 8}, {6, 1, 3, 3}, group), "y")->is_depthwise);
  EXPECT_TRUE(layer_at(one_layer("Conv", {1, 6, 8, 8}, {12, 1, 3, 3}, group), "y")->is_depthwise);
  EXPECT_FALSE(layer_at(one_layer("Conv", {1, 1, 8, 8}, {6, 1, 3, 3}), "y")->is_depthwise);
}

TEST(LayerOf, PutsChannelsOfConvTransposeOnDimension1WithinGroups) {
  const auto one = layer_at(one_layer("ConvTranspose", {1, 3, 8, 8}, {3, 5, 3, 3}, {}, {5}), "y");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->channel_axis, 1);
  EXPECT_EQ(one->channels, 5);
  EXPECT_EQ(one->reduction, 3 * 9);
  const auto two =
      layer_at(one_layer("ConvTranspose", {1, 4, 8, 8}, {4, 2, 3, 3}, {{"group", std::int64_t{2}}}, {4}), "y");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->channels, 4);
  EXPECT_EQ(two->group_count, 2);
  EXPECT_EQ(two->reduction, 2 * 9);
}

TEST(LayerOf, FollowsTransBOfGemm) {
  const auto rows = layer_at(one_layer("Gemm", {2, 8}, {3, 8}, {{"transB", std::int64_t{1}}}), "y");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->channel_axis, 0);
  EXPECT_EQ(rows->channels, 3);
  EXPECT_EQ(rows->reduction, 8);
  const auto columns = layer_at(one_layer("Gemm", {2, 8}, {8, 3}), "y");
  ASSERT_TRUE(columns);
  EXPECT_EQ(columns->channel_axis, 1);
  EXPECT_EQ(columns->channels, 3);
  EXPECT_EQ(columns->reduction, 8);
}

TEST(LayerOf, AcceptsGemmBiasesOfOneNumberAChannel) {
  for (const Shape& bias : {Shape{}, Shape{1}, Shape{3}, Shape{1, 3}, Shape{1, 1}}) {
    EXPECT_TRUE(layer_at(one_layer("Gemm", {2, 8}, {8, 3}, {}, bias), "y")) << bias.size();
  }
  for (const Shape& bias : {Shape{2, 3}, Shape{2, 1}}) {
    std::string why;
    EXPECT_FALSE(layer_at(one_layer("Gemm", {2, 8}, {8, 3}, {}, bias), "y", &why));
    EXPECT_NE(why.find("bias \"b\""), std::string::npos) << why;
  }
}

TEST(LayerOf, PutsChannelsOfMatMulOnDimension1) {
  const auto layer = layer_at(one_layer("MatMul", {4, 2, 8}, {8, 3}), "y");
  ASSERT_TRUE(layer);
  EXPECT_EQ(layer->channel_axis, 1);
  EXPECT_EQ(layer->channels, 3);
  EXPECT_EQ(layer->reduction, 8);
}

TEST(LayerOf, SaysWhyANodeIsNoLayer) {
  std::string why;
  EXPECT_FALSE(layer_at(one_layer("Gemm", {8, 2}, {8, 3}, {{"transA", std::int64_t{1}}}), "y", &why));
  EXPECT_NE(why.find("transA"), std::string::npos);
  EXPECT_FALSE(layer_at(one_layer("MatMul", {1, 8}, {2, 8, 3}), "y", &why));
  EXPECT_NE(why.find("[2,8,3]"), std::string::npos);
  EXPECT_FALSE(layer_at(one_layer("Conv", {1, 3, 8, 8}, {}), "y", &why));  // a scalar weight
  EXPECT_FALSE(layer_at(one_layer("Conv", {1, 3, 8, 8}, {0, 3, 1, 1}), "y", &why));
  EXPECT_FALSE(layer_at(one_layer("Conv", {1, 3, 8, 8}, {5, 3, 1, 1}, {{"group", INT64_MIN}}), "y", &why));
  EXPECT_FALSE(layer_at(one_layer("Conv", {1, 3, 8, 8}, {5, 3, 1, 1}, {}, {4}), "y", &why));
  EXPECT_FALSE(layer_at(one_layer("Add", {2}, {2}), "y", &why));
  EXPECT_NE(why.find("Add has no weight"), std::string::npos);

  GraphBuilder activations;
  const ValueId a = activations.input("a", {2, 2}), c = activations.input("c", {2, 2});
  activations.output(activations.node("MatMul", {a, c}, "y"));
  EXPECT_FALSE(layer_at(activations, "y", &why));
  EXPECT_NE(why.find("not a constant"), std::string::npos);

  GraphBuilder half;
  const ValueId w = half.constant("w", Tensor::zeros(DType::f16, {2, 2}).value());
  half.output(half.node("MatMul", {half.input("x", {2, 2}), w}, "y"));
  EXPECT_FALSE(layer_at(half, "y", &why));
  EXPECT_NE(why.find("f16"), std::string::npos);
}

// B001: one matrix as embedding table and output projection: the layer is one, the other reader is named.
TEST(LayerOf, TellsWhoElseReadsAWeight) {
  GraphBuilder b;
  const ValueId ids = b.input("ids", {3}, DType::i64);
  const ValueId table = b.constant("table", varied({32, 16}));
  const ValueId h = b.node("Gather", {table, ids}, "h");
  b.output(b.node("Gemm", {h, table}, "logits", {{"transB", std::int64_t{1}}}));
  const auto layer = layer_at(b, "logits");
  ASSERT_TRUE(layer);
  const std::vector<graph::NodeId> others = graph::other_readers(b.graph, layer->weight);
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(b.graph.address(others[0]), "Gather_h");
}

TEST(LayerOf, CodesAreSharedOnlyAlongOneDimension) {
  for (const bool is_transposed : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.input("x", {2, 4}), w = b.constant("w", varied({4, 4}));
    b.output(b.node("MatMul", {x, w}, "y"));
    b.output(b.node("Gemm", {x, w}, "z", {{"transB", std::int64_t{is_transposed}}}));
    const auto layers = graph::layers_of(b.graph);
    ASSERT_EQ(layers.size(), 2u);
    EXPECT_EQ(graph::can_share_codes(layers[0], layers[1]), !is_transposed);
    EXPECT_TRUE(graph::other_readers(b.graph, w).empty());
  }
}

TEST(LayerOf, CountsASubgraphThatCapturesAWeightAsItsReader) {
  GraphBuilder c = one_layer("MatMul", {2, 4}, {4, 4});
  graph::Node loop;
  loop.op_type = "Loop";
  loop.outputs = {c.graph.add_value("z", DType::f32)};
  loop.captured = {*c.graph.find_value("w")};
  c.graph.add_node(loop);
  EXPECT_TRUE(layer_at(c, "y"));
  EXPECT_EQ(graph::other_readers(c.graph, *c.graph.find_value("w")).size(), 1u);
}

TEST(LayersOf, ComeInGraphOrder) {
  GraphBuilder b;
  const ValueId x = b.input("x", {2, 4});
  const ValueId first = b.node("MatMul", {x, b.constant("w1", varied({4, 3}))}, "first");
  b.output(b.node("Gemm", {b.node("Relu", {first}, "r"), b.constant("w2", varied({3, 2}))}, "second"));
  const auto layers = graph::layers_of(b.graph);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(b.graph.value(layers[0].weight).name, "w1");
  EXPECT_EQ(b.graph.value(layers[1].weight).name, "w2");
}

}  // namespace
}  // namespace ctk::test
