#include "graph/passes/passes.h"

#include <gtest/gtest.h>

#include "tests/support/pass_checks.h"

namespace ctk::test {
namespace {

using graph::Op;
using graph::ValueId;

// A residual block as exporters write it: Conv, BatchNormalization, Relu, Pad, Conv, Identity, Add, Relu; then a
// flattened head behind a Dropout.
GraphBuilder block() {
  GraphBuilder b;
  const ValueId x = b.input("x", {2, 3, 6, 6});
  const auto constants = [&](const std::string& name, float value) {
    return b.constant(name, floats({3}, {value, value + 0.25f, value + 0.5f}));
  };
  const ValueId w1 = b.node("Constant", {}, "w1", {{"value", varied({3, 3, 3, 3})}});
  const ValueId c1 = b.node("Conv", {x, w1}, "c1", {{"pads", Ints{1, 1, 1, 1}}});
  const ValueId n1 = b.node(
      "BatchNormalization",
      {c1, constants("scale", 0.5f), constants("shift", 0.1f), constants("mean", 0.2f), constants("var", 1.0f)}, "n1");
  const ValueId r1 = b.node("Relu", {n1}, "r1");
  const ValueId wide = b.node("Pad", {r1, b.constant("pads", ints({0, 0, 1, 1, 0, 0, 1, 1}))}, "wide");
  const ValueId c2 = b.node("Conv", {wide, b.constant("w2", varied({3, 3, 3, 3}, 2))}, "c2");
  const ValueId same = b.node("Identity", {c2}, "same");
  const ValueId r2 = b.node("Relu", {b.node("Add", {same, x}, "sum")}, "r2");
  const ValueId flat = b.node("Flatten", {b.node("GlobalAveragePool", {r2}, "pooled")}, "flat");
  const ValueId kept = b.node("Dropout", {flat}, "kept");
  b.node("Neg", {flat}, "unread");
  const ValueId logits = b.node("Gemm", {kept, b.constant("w3", varied({3, 4}, 3))}, "inner_logits");
  b.output(b.node("Identity", {logits}, "logits"));
  return b;
}

TEST(Passes, CleanAResidualBlockAndKeepItsFunction) {
  GraphBuilder b = block();
  const std::vector<Tensor> inputs = {varied({2, 3, 6, 6}, 9)};
  const auto before = interpret(b.graph, inputs);
  ASSERT_TRUE(before) << before.error().message;
  const auto outcomes = graph::run_passes(b.graph);
  ASSERT_TRUE(outcomes) << outcomes.error().message;
  const auto after = interpret(b.graph, inputs);
  ASSERT_TRUE(after) << after.error().message;
  for (std::size_t i = 0; i < before->outputs[0].size(); ++i) {
    EXPECT_NEAR(after->outputs[0].values<float>()[i], before->outputs[0].values<float>()[i], 1e-5);
  }
  EXPECT_EQ(b.graph.value(b.graph.outputs()[0]).name, "logits");
  for (Op op : {Op::Constant, Op::BatchNormalization, Op::Pad, Op::Identity, Op::Dropout, Op::Neg}) {
    EXPECT_EQ(count_ops(b.graph, op), 0) << graph::name_of(op);
  }
  const auto host = [&](const std::string& output) { return b.graph.node(producer_of(b.graph, output)).absorbed_by; };
  EXPECT_EQ(host("r1"), producer_of(b.graph, "c1"));
  EXPECT_EQ(host("sum"), producer_of(b.graph, "c2"));
  EXPECT_EQ(host("r2"), producer_of(b.graph, "sum"));
}

TEST(Passes, ChangeNothingTheSecondTime) {
  GraphBuilder b = block();
  ASSERT_TRUE(graph::run_passes(b.graph));
  const auto again = graph::run_passes(b.graph);
  ASSERT_TRUE(again);
  for (const graph::PassOutcome& outcome : *again) EXPECT_EQ(outcome.changes, 0) << outcome.name;
}

TEST(Passes, AreNamedAndExplained) {
  ASSERT_EQ(graph::passes().size(), 7u);
  for (const graph::Pass& pass : graph::passes()) {
    EXPECT_FALSE(pass.name.empty());
    EXPECT_FALSE(pass.what.empty());
    EXPECT_NE(pass.run, nullptr);
  }
  EXPECT_EQ(graph::passes().front().name, "fold_constants");
  EXPECT_EQ(graph::passes().back().name, "eliminate_dead");
}

TEST(Passes, AcceptAnEmptyGraph) {
  graph::Graph empty;
  EXPECT_TRUE(graph::run_passes(empty));
}

}  // namespace
}  // namespace ctk::test
