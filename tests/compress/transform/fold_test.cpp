// Folding factors: the network computes what it did, and nobody else sees a scaled value.
#include "compress/transform/fold.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/graph_builder.h"
#include "tests/support/tiny_decoder.h"

namespace ctk::test {
namespace {

using graph::Graph;
using graph::ValueId;
using transform::Fold;
using transform::InputGroup;

struct Scaled {
  Graph graph;
  std::vector<InputGroup> groups;
  std::vector<Fold> folds;
};

std::set<std::string> all_layers(const Graph& graph) {
  std::set<std::string> names;
  for (const graph::Layer& layer : graph::layers_of(graph)) names.insert(graph.address(layer.node));
  return names;
}

// Factors between 1/4 and 4, one a class.
std::vector<float> uneven(const Fold& fold, unsigned seed) {
  const Tensor numbers = varied({static_cast<std::int64_t>(fold.class_of.size())}, seed);
  std::vector<float> factors;
  for (const std::uint32_t c : fold.class_of) factors.push_back(std::exp2(2 * numbers.values<float>()[c]));
  return factors;
}

Scaled scale_all(const Graph& original, const std::vector<Shape>& shapes, const std::set<std::string>& wanted) {
  Scaled result{original.clone(), transform::input_groups(original, wanted), {}};
  const auto infos = graph::infer_shapes(original, shapes, true).value();
  unsigned seed = 3;
  for (const InputGroup& group : result.groups) {
    result.folds.push_back(transform::find_fold(original, group, infos));
    const Fold& fold = result.folds.back();
    if (group.reason.empty()) transform::scale_inputs(result.graph, group, fold, uneven(fold, seed++));
  }
  const auto status = graph::verify(result.graph);
  EXPECT_TRUE(status) << status.error().message;
  return result;
}

void expect_same_outputs(const Graph& a, const Graph& b, const std::vector<Tensor>& inputs) {
  const auto before = interpret(a, inputs), after = interpret(b, inputs);
  ASSERT_TRUE(before) << before.error().message;
  ASSERT_TRUE(after) << after.error().message;
  for (std::size_t o = 0; o < before->outputs.size(); ++o) {
    const auto x = before->outputs[o].values<float>(), y = after->outputs[o].values<float>();
    ASSERT_EQ(x.size(), y.size());
    double largest = 1;
    for (const float value : x) largest = std::max(largest, std::abs(static_cast<double>(value)));
    // Each product is rounded once more than before: far below 1e-5 of the largest.
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-5 * largest) << "output " << o << " at " << i;
  }
}

struct Norm {
  GraphBuilder b;
  ValueId x, n;
};
Norm layer_norm() {
  Norm net;
  net.x = net.b.input("x", {4, 16});
  const auto scale = net.b.constant("scale", varied({16}, 2)), bias = net.b.constant("bias", varied({16}, 3));
  net.n = net.b.node("LayerNormalization", {net.x, scale, bias}, "n");
  return net;
}

TEST(Fold, ANormTakesTheFactorsOfAllWhoReadIt) {
  Norm net = layer_norm();
  net.b.output(net.b.node("MatMul", {net.n, net.b.constant("w", varied({16, 8}, 4))}, "y"));
  net.b.output(
      net.b.node("Gemm", {net.n, net.b.constant("v", varied({5, 16}, 5))}, "z", {{"transB", std::int64_t{1}}}));
  const Scaled scaled = scale_all(net.b.graph, {{4, 16}}, {"MatMul_y"});
  ASSERT_EQ(scaled.groups.size(), 1u);  // the layer that stays float is scaled along
  EXPECT_EQ(scaled.folds[0].where, "LayerNormalization_n");
  EXPECT_EQ(scaled.graph.order().size(), 3u);
  const float factor = uneven(scaled.folds[0], 3)[7];
  EXPECT_FLOAT_EQ(scaled.graph.value(*scaled.graph.find_value("scale")).constant->values<float>()[7],
                  varied({16}, 2).values<float>()[7] / factor);
  EXPECT_FLOAT_EQ(scaled.graph.value(*scaled.graph.find_value("bias")).constant->values<float>()[7],
                  varied({16}, 3).values<float>()[7] / factor);
  EXPECT_FLOAT_EQ(scaled.graph.value(*scaled.graph.find_value("v")).constant->values<float>()[2 * 16 + 7],
                  varied({5, 16}, 5).values<float>()[2 * 16 + 7] * factor);
  expect_same_outputs(net.b.graph, scaled.graph, {varied({4, 16}, 9)});
}

// B044: a norm that feeds a residual, another branch or an output as well may not be scaled.
TEST(Fold, AMulOfItsOwnWhereSomebodyElseReadsTheNorm) {
  for (const bool is_output : {false, true}) {
    Norm net = layer_norm();
    const auto y = net.b.node("MatMul", {net.n, net.b.constant("w", varied({16, 16}, 4))}, "y");
    net.b.output(net.b.node("Add", {y, is_output ? net.x : net.n}, "sum"));
    if (is_output) net.b.output(net.n);
    const Scaled scaled = scale_all(net.b.graph, {{4, 16}}, {"MatMul_y"});
    EXPECT_TRUE(scaled.folds[0].edits.empty());
    EXPECT_EQ(scaled.folds[0].reason, (is_output ? "the graph's outputs" : "Add_sum") + std::string(" also reads it"));
    EXPECT_EQ(count_ops(scaled.graph, graph::Op::Mul), 1);
    EXPECT_EQ(
        scaled.graph.address(scaled.graph.value(scaled.graph.node(producer_of(scaled.graph, "y")).inputs[0]).producer),
        "MatMul_y.input_scale");
    expect_same_outputs(net.b.graph, scaled.graph, {varied({4, 16}, 9)});
  }
}

TEST(Fold, ALayersChannelsTakeThemThroughReluPoolsAndFlatten) {
  GraphBuilder b;
  const auto x = b.input("x", {2, 3, 6, 6});
  const auto c = b.node("Conv", {x, b.constant("w", varied({4, 3, 3, 3}, 1)), b.constant("b", varied({4}, 2))}, "c");
  const auto p =
      b.node("MaxPool", {b.node("Relu", {c}, "r")}, "p", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  const auto d = b.node("Conv", {p, b.constant("v", varied({5, 4, 1, 1}, 3))}, "d");
  const auto f = b.node("Flatten", {d}, "f");
  b.output(b.node("Gemm", {f, b.constant("u", varied({20, 3}, 4)), b.constant("e", varied({3}, 5))}, "y"));
  const Scaled scaled = scale_all(b.graph, {{2, 3, 6, 6}}, all_layers(b.graph));
  ASSERT_EQ(scaled.groups.size(), 3u);
  EXPECT_NE(scaled.folds[0].reason.find("is an input of the graph"), std::string::npos);
  EXPECT_EQ(scaled.folds[1].where, "Conv_c");
  EXPECT_EQ(scaled.folds[2].where, "Conv_d");
  // 2 x 2 pixels of a channel share a factor.
  EXPECT_EQ(scaled.folds[2].class_of,
            (std::vector<std::uint32_t>{0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12, 16, 16, 16, 16}));
  EXPECT_EQ(count_ops(scaled.graph, graph::Op::Mul), 1);  // in front of the first convolution
  expect_same_outputs(b.graph, scaled.graph, {varied({2, 3, 6, 6}, 9)});
}

TEST(Fold, EveryGroupOfADecoderFoldsAndHeadsThatShareValuesShareFactors) {
  const Graph decoder = tiny_decoder();
  std::set<std::string> wanted = all_layers(decoder);
  wanted.erase("lm_head");
  const std::vector<Tensor> inputs{Tensor::of<std::int64_t>({1, 5}, std::vector<std::int64_t>{3, 1, 36, 0, 7})};
  const Scaled scaled = scale_all(decoder, {{1, 5}}, wanted);
  ASSERT_EQ(scaled.groups.size(), 8u);
  std::vector<std::string> places;
  for (const Fold& fold : scaled.folds) places.push_back(fold.where);
  const std::string at = "model.layers.1.";
  EXPECT_EQ((std::vector<std::string>(places.begin() + 4, places.end())),
            (std::vector<std::string>{at + "input_layernorm", at + "self_attn.v_proj", at + "post_attention_layernorm",
                                      at + "mlp.up_proj"}));
  // 4 heads of 8 read 2 heads of values: feature 3 of head 1 is that of head 0; head 2 begins another.
  EXPECT_EQ(scaled.folds[1].class_of[8 + 3], 3u);
  EXPECT_EQ(scaled.folds[1].class_of[16 + 3], 16u + 3);
  EXPECT_EQ(scaled.graph.order().size(), decoder.order().size());
  expect_same_outputs(decoder, scaled.graph, inputs);
}

TEST(Fold, WhatSharesItsWeightOrIsReadInGroupsIsLeftWithAReason) {
  GraphBuilder b;
  const auto x = b.input("x", {2, 4, 5, 5});
  const auto r = b.node("Relu", {x}, "r");
  b.output(b.node("Conv", {r, b.constant("w", varied({4, 1, 3, 3}, 1))}, "c", {{"group", std::int64_t{4}}}));
  const auto v = b.constant("v", varied({5, 5}, 2));
  b.output(b.node("MatMul", {r, v}, "y"));
  b.output(b.node("MatMul", {x, v}, "z"));
  const Scaled scaled = scale_all(b.graph, {{2, 4, 5, 5}}, all_layers(b.graph));
  ASSERT_EQ(scaled.groups.size(), 3u);
  EXPECT_NE(scaled.groups[0].reason.find("convolution with groups"), std::string::npos);
  EXPECT_EQ(scaled.groups[1].reason, "its weight is shared with MatMul_z, which reads something else");
  EXPECT_EQ(scaled.graph.order().size(), 4u);
}

TEST(Fold, ASumOrAnActivationThatBendsTakesNothing) {
  GraphBuilder b;
  const auto x = b.input("x", {3, 4});
  const auto y = b.node("MatMul", {x, b.constant("w", varied({4, 4}, 1))}, "y");
  const auto s = b.node("Sigmoid", {b.node("Add", {y, b.constant("b", varied({4}, 2))}, "a")}, "s");
  const auto z = b.node("MatMul", {s, b.constant("v", varied({4, 4}, 3))}, "z");
  b.output(b.node("MatMul",
                  {b.node("Add", {z, b.constant("e", varied({4}, 5))}, "d"), b.constant("u", varied({4, 2}, 4))}, "o"));
  const Scaled scaled = scale_all(b.graph, {{3, 4}}, all_layers(b.graph));
  ASSERT_EQ(scaled.folds.size(), 3u);
  EXPECT_EQ(scaled.folds[1].reason, "Sigmoid_s (Sigmoid) does not keep factors of features");
  EXPECT_EQ(scaled.folds[2].where, "MatMul_z");  // a bias that is a node of its own goes along
  expect_same_outputs(b.graph, scaled.graph, {varied({3, 4}, 9)});
}

}  // namespace
}  // namespace ctk::test
