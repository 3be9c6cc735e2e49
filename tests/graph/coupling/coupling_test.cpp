// A cut network computes what the whole one does with the cut channels' weights at zero, and the indices that go
// together are those worked out by hand.
#include "graph/coupling/coupling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/coupling/rules.h"
#include "tests/support/small_networks.h"
#include "tests/support/tiny_decoder.h"

namespace ctk::test {
namespace {

using graph::CoupledGroup;
using graph::Coupling;
using graph::Graph;
using graph::ValueId;
using Indices = std::vector<std::int64_t>;

Coupling coupling_of(const Graph& graph) {
  auto found = Coupling::find(graph, graph::default_input_shapes(graph, 1));
  EXPECT_TRUE(found) << found.error().message;
  return *found;
}

const CoupledGroup& group_named(const Coupling& coupling, const std::string& name) {
  for (const CoupledGroup& group : coupling.groups()) {
    if (group.name == name) return group;
  }
  ADD_FAILURE() << "no group " << name;
  return coupling.groups().front();
}
// Where unit `unit` lies along axis `axis` of the constant `value`.
Indices indices_of(const Coupling& coupling, const std::string& group_name, std::size_t unit, const std::string& value,
                   std::size_t axis) {
  const CoupledGroup& group = group_named(coupling, group_name);
  for (std::size_t a = 0; a < group.axes.size(); ++a) {
    const bool is_it = coupling.graph().value(group.axes[a].value).name == value && group.axes[a].axis == axis;
    if (is_it) return group.units[unit].indices[a];
  }
  return {};
}

// The whole network with every weight of the removed units at 0.
Graph zeroed(const Coupling& coupling, const std::vector<std::vector<std::size_t>>& removed) {
  Graph graph = coupling.graph().clone();
  for (std::size_t g = 0; g < removed.size(); ++g) {
    const CoupledGroup& group = coupling.groups()[g];
    for (std::size_t a = 0; a < group.axes.size(); ++a) {
      Tensor tensor = graph.value(group.axes[a].value).constant->clone();
      std::size_t inner = 1;
      for (std::size_t d = group.axes[a].axis + 1; d < tensor.shape().size(); ++d) {
        inner *= static_cast<std::size_t>(tensor.shape()[d]);
      }
      const auto size = static_cast<std::size_t>(tensor.shape()[group.axes[a].axis]);
      for (std::size_t unit : removed[g]) {
        for (std::int64_t index : group.units[unit].indices[a]) {
          auto values = tensor.mutable_values<float>();
          for (std::size_t i = 0; i < values.size(); ++i) {
            if (i / inner % size == static_cast<std::size_t>(index)) values[i] = 0.0f;
          }
        }
      }
      graph.value(group.axes[a].value).constant = tensor;
    }
  }
  return graph;
}

// `removed` units of each group; every group that can be cut when empty: two units of it, never all.
void expect_cut_like_zeroed(const Graph& graph, std::vector<std::vector<std::size_t>> removed = {}) {
  const Coupling coupling = coupling_of(graph);
  if (removed.empty()) {
    removed.resize(coupling.groups().size());
    for (std::size_t g = 0; g < removed.size(); ++g) {
      if (!coupling.groups()[g].reason.empty()) continue;
      removed[g] = {1};
      if (coupling.groups()[g].units.size() > 3) removed[g].push_back(3);
    }
  }
  const auto cut = coupling.cut(removed);
  ASSERT_TRUE(cut) << cut.error().message;
  const auto sound = graph::verify(*cut);
  EXPECT_TRUE(sound) << sound.error().message;
  std::vector<Tensor> inputs;
  unsigned seed = 42;
  for (const Shape& shape : graph::default_input_shapes(graph, 1)) {
    const bool is_float = graph.value(graph.inputs()[inputs.size()]).dtype == DType::f32;
    inputs.push_back(is_float ? varied(shape, seed++) : *cast(counting(shape), DType::i64));
  }
  const auto expected = interpret(zeroed(coupling, removed), inputs);
  ASSERT_TRUE(expected) << expected.error().message;
  const auto found = interpret(*cut, inputs);
  ASSERT_TRUE(found) << found.error().message;
  for (std::size_t o = 0; o < found->outputs.size(); ++o) {
    ASSERT_EQ(found->outputs[o].shape(), expected->outputs[o].shape());
    const auto a = expected->outputs[o].values<float>(), b = found->outputs[o].values<float>();
    float largest = 1.0f;
    for (float value : a) largest = std::max(largest, std::abs(value));
    // Sums of the same numbers in another order: a few hundred roundings at most.
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 2e-5f * largest) << "output " << o << " at " << i;
  }
}

// A network of convolutions, by a name, an input and a weight's shape each.
struct ConvBuilder : GraphBuilder {
  ValueId conv(const std::string& name, ValueId in, Shape weight, std::int64_t group = 1) {
    const auto w = constant(name + ".w", varied(weight, ++seed_));
    const auto bias = constant(name + ".b", varied({weight[0]}, ++seed_));
    const std::int64_t pad = weight[2] / 2;
    const ValueId out = node("Conv", {in, w, bias}, name, {{"group", group}, {"pads", Ints{pad, pad, pad, pad}}});
    graph.node(graph.value(out).producer).name = name;
    return out;
  }
  ValueId gemm(const std::string& name, ValueId in, Shape weight) {
    const auto w = constant(name + ".w", varied(weight, ++seed_));
    const ValueId out = node("Gemm", {in, w}, name, {{"transB", std::int64_t{1}}});
    graph.node(graph.value(out).producer).name = name;
    return out;
  }
  ValueId relu(ValueId in) { return node("Relu", {in}, graph.value(in).name + ".relu"); }
  unsigned seed_ = 0;
};

TEST(Coupling, EveryOperatorHasARow) {
#define CTK_OP(name) EXPECT_EQ(graph::coupling_rule(graph::Op::name).op, graph::Op::name);
#include "graph/ops.def"
#undef CTK_OP
}

TEST(Coupling, ChainTiesProducerBiasAndReader) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 5, 5});
  b.output(b.conv("b", b.relu(b.conv("a", x, {16, 3, 3, 3})), {8, 16, 3, 3}));
  const Coupling coupling = coupling_of(b.graph);
  ASSERT_EQ(coupling.groups().size(), 2u);
  EXPECT_EQ(coupling.groups()[0].name, "a");
  EXPECT_EQ(coupling.groups()[0].units.size(), 16u);
  EXPECT_EQ(indices_of(coupling, "a", 5, "a.w", 0), Indices{5});
  EXPECT_EQ(indices_of(coupling, "a", 5, "a.b", 0), Indices{5});
  EXPECT_EQ(indices_of(coupling, "a", 5, "b.w", 1), Indices{5});
  EXPECT_EQ(coupling.groups()[1].reason, "leaves the network as \"b\"");
  // B070: 3 -> 16 -> 8 cut by half is 3 -> 8 -> 8, in the weights themselves.
  const auto cut = coupling.cut({{0, 2, 4, 6, 8, 10, 12, 14}, {}});
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_EQ(cut->value(*cut->find_value("a.w")).constant->shape(), (Shape{8, 3, 3, 3}));
  EXPECT_EQ(cut->value(*cut->find_value("a.b")).constant->shape(), (Shape{8}));
  EXPECT_EQ(cut->value(*cut->find_value("b.w")).constant->shape(), (Shape{8, 8, 3, 3}));
  EXPECT_EQ(cut->value(*cut->find_value("a.b")).constant->values<float>()[1],
            b.graph.value(*b.graph.find_value("a.b")).constant->values<float>()[3]);
  expect_cut_like_zeroed(b.graph);
}

// B061: group 4 of 8 channels takes channel j of every group at once, so that the groups stay of one size.
TEST(Coupling, GroupedConvolutionKeepsItsGroups) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 5, 5});
  const auto grouped = b.conv("g", b.conv("a", x, {8, 3, 1, 1}), {8, 2, 3, 3}, 4);
  b.output(b.conv("c", grouped, {2, 8, 1, 1}));
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(group_named(coupling, "a").units.size(), 2u);
  EXPECT_EQ(indices_of(coupling, "a", 1, "a.w", 0), (Indices{1, 3, 5, 7}));
  EXPECT_EQ(indices_of(coupling, "a", 1, "g.w", 1), Indices{1});
  EXPECT_EQ(indices_of(coupling, "g", 0, "c.w", 1), (Indices{0, 2, 4, 6}));
  const auto cut = coupling.cut({{1}, {0}, {}});
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_EQ(cut->value(*cut->find_value("g.w")).constant->shape(), (Shape{4, 1, 3, 3}));
  EXPECT_EQ(cut->node(producer_of(*cut, "g")).attributes.get_int("group", 0), 4);
  expect_cut_like_zeroed(b.graph);
}

TEST(Coupling, DepthwiseLosesAGroupWithItsChannel) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 5, 5});
  b.output(b.conv("c", b.conv("d", b.conv("a", x, {6, 3, 1, 1}), {6, 1, 3, 3}, 6), {2, 6, 1, 1}));
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(group_named(coupling, "a").units.size(), 6u);
  const auto cut = coupling.cut({{0, 1, 2}, {}});
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_EQ(cut->node(producer_of(*cut, "d")).attributes.get_int("group", 0), 3);
  expect_cut_like_zeroed(b.graph);
}

TEST(Coupling, DepthwiseMultiplierLosesAllOutputsOfAChannel) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 5, 5});
  b.output(b.conv("c", b.conv("d", b.conv("a", x, {4, 3, 1, 1}), {8, 1, 3, 3}, 4), {2, 8, 1, 1}));
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(indices_of(coupling, "a", 2, "d.w", 0), (Indices{4, 5}));
  EXPECT_EQ(indices_of(coupling, "a", 2, "c.w", 1), (Indices{4, 5}));
  expect_cut_like_zeroed(b.graph);
}

// B063: the same tensor twice in a Concat; channel i of it is channels i and i + 4 of what reads the Concat.
TEST(Coupling, ConcatOfOneTensorTwiceCutsBothPlaces) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 4, 5, 5});
  const auto c1 = b.conv("c1", x, {4, 4, 1, 1});
  b.output(b.conv("c3", b.node("Concat", {c1, c1}, "cat", {{"axis", std::int64_t{1}}}), {4, 8, 1, 1}));
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(indices_of(coupling, "c1", 1, "c3.w", 1), (Indices{1, 5}));
  expect_cut_like_zeroed(b.graph);
}

TEST(Coupling, ConcatOffsetsStartBehindThePartBefore) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 4, 5, 5});
  const auto c1 = b.conv("c1", x, {4, 4, 1, 1}), c2 = b.conv("c2", x, {6, 4, 1, 1});
  b.output(b.conv("c3", b.node("Concat", {c1, x, c2}, "cat", {{"axis", std::int64_t{1}}}), {4, 14, 1, 1}));
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(indices_of(coupling, "c1", 3, "c3.w", 1), Indices{3});
  EXPECT_EQ(indices_of(coupling, "c2", 0, "c3.w", 1), Indices{8});
  expect_cut_like_zeroed(b.graph);
}

// B064: both branches of an Add keep the same indices, and what reads the sum loses each column once.
TEST(Coupling, AddTiesBothBranches) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 5, 5});
  const auto sum = b.node("Add", {b.conv("c1", x, {4, 3, 1, 1}), b.conv("c2", x, {4, 3, 1, 1})}, "sum");
  b.output(b.gemm("fc", b.node("Flatten", {b.node("GlobalAveragePool", {sum}, "p")}, "f"), {2, 4}));
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(group_named(coupling, "c1").units.size(), 4u);
  EXPECT_EQ(indices_of(coupling, "c1", 2, "c2.w", 0), Indices{2});
  EXPECT_EQ(indices_of(coupling, "c1", 2, "fc.w", 1), Indices{2});
  expect_cut_like_zeroed(b.graph);
}

// B067: main path, gate input and gate output of a squeeze-excite block are one group.
TEST(Coupling, SqueezeExciteCutsGateAndPathAlike) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 5, 5});
  const auto a = b.conv("a", x, {8, 3, 3, 3});
  const auto squeeze = b.relu(b.conv("down", b.node("GlobalAveragePool", {a}, "p"), {2, 8, 1, 1}));
  const auto gate = b.node("Sigmoid", {b.conv("up", squeeze, {8, 2, 1, 1})}, "gate");
  b.output(b.conv("c", b.node("Mul", {a, gate}, "scaled"), {4, 8, 1, 1}));
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(indices_of(coupling, "a", 6, "down.w", 1), Indices{6});
  EXPECT_EQ(indices_of(coupling, "a", 6, "up.w", 0), Indices{6});
  EXPECT_EQ(indices_of(coupling, "a", 6, "c.w", 1), Indices{6});
  EXPECT_EQ(group_named(coupling, "down").units.size(), 2u);
  expect_cut_like_zeroed(b.graph);
}

TEST(Coupling, FlattenTurnsAChannelIntoABlockOfFeatures) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 2, 3});
  const auto flat = b.node("Flatten", {b.conv("a", x, {4, 3, 1, 1})}, "f");
  b.output(b.gemm("fc", flat, {2, 24}));
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(indices_of(coupling, "a", 1, "fc.w", 1), (Indices{6, 7, 8, 9, 10, 11}));
  expect_cut_like_zeroed(b.graph);
}

// Option A of ResNet: the shortcut is taken at every second place and padded with empty channels on both sides.
TEST(Coupling, PaddedShortcutShiftsChannelsAndShrinksThePadding) {
  const Graph graph = residual_network();
  const Coupling coupling = coupling_of(graph);
  // Channel 0 of c1 is 2 of the 12 of c3, behind two padded ones. c5 has two groups of 8: 2 of the first stands where
  // 10 of the second does, which is padding at the other end.
  EXPECT_EQ(indices_of(coupling, "Conv_c1", 0, "c3.w", 0), (Indices{2, 10}));
  EXPECT_EQ(indices_of(coupling, "Conv_c1", 0, "c1.w", 0), Indices{0});
  expect_cut_like_zeroed(graph);
}

TEST(Coupling, ReshapeToHeadsCutsWholeHeads) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 5, 6});
  const auto q = b.node("MatMul", {x, b.constant("q.w", varied({6, 8}, 1))}, "q");
  const auto k = b.node("MatMul", {x, b.constant("k.w", varied({6, 8}, 2))}, "k");
  const auto v = b.node("MatMul", {x, b.constant("v.w", varied({6, 8}, 3))}, "v");
  const auto heads = [&](ValueId in, const std::string& name, Ints order) {
    const auto shape = b.constant(name + ".shape", ints({0, 0, 2, 4}));
    return b.node("Transpose", {b.node("Reshape", {in, shape}, name + ".r")}, name + ".t",
                  {{"perm", std::move(order)}});
  };
  const auto scores = b.node("MatMul", {heads(q, "qh", {0, 2, 1, 3}), heads(k, "kh", {0, 2, 3, 1})}, "scores");
  const auto weights = b.node("Softmax", {scores}, "soft", {{"axis", std::int64_t{-1}}});
  const auto mixed = b.node("MatMul", {weights, heads(v, "vh", {0, 2, 1, 3})}, "mixed");
  const auto back = b.node("Transpose", {mixed}, "back", {{"perm", Ints{0, 2, 1, 3}}});
  const auto joined = b.node("Reshape", {back, b.constant("joined.shape", ints({0, 0, 8}))}, "joined");
  b.output(b.node("MatMul", {joined, b.constant("o.w", varied({8, 6}, 4))}, "o"));
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(group_named(coupling, "MatMul_q").units.size(), 2u);
  EXPECT_EQ(indices_of(coupling, "MatMul_q", 1, "k.w", 1), (Indices{4, 5, 6, 7}));
  EXPECT_EQ(indices_of(coupling, "MatMul_q", 1, "o.w", 0), (Indices{4, 5, 6, 7}));
  expect_cut_like_zeroed(b.graph);
}

// A head of keys and values goes with the two heads of queries that read it; the MLP's width is another group; the
// stream's statistics are those of the normalization.
TEST(Coupling, DecoderTiesGroupedQueriesAndGatedMlp) {
  const Graph graph = tiny_decoder();
  const Coupling coupling = coupling_of(graph);
  bool has_statistics = false;
  for (const CoupledGroup& group : coupling.groups()) {
    has_statistics |= !group.statistics.empty();
  }
  EXPECT_TRUE(has_statistics);
  std::vector<std::vector<std::size_t>> removed(coupling.groups().size());
  for (std::size_t g = 0; g < removed.size(); ++g) {
    if (coupling.groups()[g].reason.empty() && coupling.groups()[g].statistics.empty()) removed[g] = {1};
  }
  expect_cut_like_zeroed(graph, removed);
}

TEST(Coupling, SplitAndSliceFollowTheirPart) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 5, 5});
  const auto a = b.conv("a", x, {8, 3, 1, 1});
  const auto parts =
      b.nodes("Split", {a, b.constant("sizes", ints({5, 3}))}, {"s0", "s1"}, {{"axis", std::int64_t{1}}});
  const auto middle =
      b.node("Slice", {a, b.constant("lo", ints({2})), b.constant("hi", ints({6})), b.constant("ax", ints({1}))}, "m");
  const auto y0 = b.conv("y0", parts[0], {2, 5, 1, 1}), y1 = b.conv("y1", parts[1], {2, 3, 1, 1});
  b.output(b.node("Add", {b.node("Add", {y0, y1}, "y01"), b.conv("y2", middle, {2, 4, 1, 1})}, "y"));
  const Coupling coupling = coupling_of(b.graph);
  // Channels 0 and 1 are in s0 only, 2 to 4 in s0 and m, 5 in s1 and m, 6 and 7 in s1 only.
  EXPECT_EQ(group_named(coupling, "a").units.size(), 2u);
  EXPECT_EQ(group_named(coupling, "a#2").units.size(), 3u);
  EXPECT_EQ(indices_of(coupling, "a#2", 0, "y2.w", 1), Indices{0});
  expect_cut_like_zeroed(b.graph);
}

TEST(Coupling, TransposedConvolutionAndPools) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 6, 6});
  const auto pooled =
      b.node("MaxPool", {b.conv("a", x, {4, 3, 3, 3})}, "p", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  const auto up =
      b.node("ConvTranspose", {pooled, b.constant("t.w", varied({4, 5, 2, 2}, 7)), b.constant("t.b", varied({5}, 8))},
             "t", {{"strides", Ints{2, 2}}});
  b.output(b.conv("c", up, {2, 5, 1, 1}));
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(indices_of(coupling, "a", 3, "t.w", 0), Indices{3});
  EXPECT_EQ(indices_of(coupling, "ConvTranspose_t", 4, "t.w", 1), Indices{4});
  expect_cut_like_zeroed(b.graph);
}

TEST(Coupling, WhatCannotBeCutSaysWhy) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 4, 5, 5});
  const auto kept = b.node("Add", {b.conv("a", x, {4, 4, 1, 1}), x}, "kept");  // meets the input's own channels
  const auto custom = b.node("Mystery", {b.conv("m", kept, {4, 4, 1, 1})}, "custom", {}, "our.domain");
  const auto soft = b.node("Softmax", {b.conv("s", kept, {4, 4, 1, 1})}, "soft", {{"axis", std::int64_t{1}}});
  b.output(custom);
  b.output(soft);
  const Coupling coupling = coupling_of(b.graph);
  EXPECT_EQ(group_named(coupling, "a").reason, "meets channels that stay at \"Add_kept\" (Add)");
  EXPECT_EQ(group_named(coupling, "m").reason, "is read by \"Mystery_custom\" (Mystery)");
  EXPECT_EQ(group_named(coupling, "s").reason, "is normalized over at \"Softmax_soft\" (Softmax)");
}

TEST(Coupling, WeightSharedByTwoLayersIsCutOnce) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 5, 5});
  const auto w = b.constant("w", varied({4, 4, 1, 1}, 3));
  const auto a = b.conv("a", x, {4, 3, 1, 1});
  const auto first = b.node("Conv", {a, w}, "first"), second = b.node("Conv", {b.relu(first), w}, "second");
  b.output(b.conv("c", second, {2, 4, 1, 1}));
  // Its rows are the channels of `first` and `second`, its columns those of `a` and `first`: all one group.
  EXPECT_EQ(group_named(coupling_of(b.graph), "a").units.size(), 4u);
  expect_cut_like_zeroed(b.graph);
}

TEST(Coupling, RefusesToCutEverything) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 5, 5});
  b.output(b.conv("b", b.conv("a", x, {2, 3, 1, 1}), {2, 2, 1, 1}));
  const auto cut = coupling_of(b.graph).cut({{0, 1}, {}});
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("expected a channel to stay"), std::string::npos) << cut.error().message;
}

TEST(Coupling, OneChannelIsNoGroupToCut) {
  ConvBuilder b;
  const auto x = b.input("x", {-1, 3, 5, 5});
  b.output(b.conv("b", b.conv("a", x, {1, 3, 1, 1}), {2, 1, 1, 1}));
  EXPECT_EQ(group_named(coupling_of(b.graph), "a").reason, "is one unit, that cannot be parted");
}

}  // namespace
}  // namespace ctk::test
