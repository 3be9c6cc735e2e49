#include <gtest/gtest.h>

#include <functional>

#include "graph/layer.h"
#include "tests/support/pass_checks.h"

namespace ctk::test {
namespace {

using graph::Op;
using graph::ValueId;

GraphBuilder conv_reading(const std::function<ValueId(GraphBuilder&)>& weight) {
  GraphBuilder b;
  const ValueId x = b.input("x", {1, 3, 5, 5});
  b.output(b.node("Conv", {x, weight(b)}, "y"));
  return b;
}

// B007: a weight is a weight whether it is an initializer, a Constant, an Identity or a Cast of one.
TEST(FoldConstants, MakesAWeightOfConstantIdentityAndCast) {
  const Tensor w = varied({4, 3, 3, 3});
  const std::function<ValueId(GraphBuilder&)> makers[] = {
      [&](GraphBuilder& b) {
        return b.node("Constant", {}, "w", {{"value", w}});
      },
      [&](GraphBuilder& b) { return b.node("Identity", {b.constant("w0", w)}, "w"); },
      [&](GraphBuilder& b) {
        return b.node("Cast", {b.constant("w16", cast(w, DType::f16).value())}, "w", {{"to", std::int64_t{1}}});
      },
      [&](GraphBuilder& b) {
        return b.node("Reshape", {b.constant("w0", w), b.constant("s", ints({4, 3, 3, -1}))}, "w");
      },
  };
  for (const auto& maker : makers) {
    GraphBuilder b = conv_reading(maker);
    EXPECT_EQ(expect_same_function(b, "fold_constants", {varied({1, 3, 5, 5}, 2)}), 1);
    EXPECT_EQ(b.graph.order().size(), 1u);
    EXPECT_EQ(graph::layers_of(b.graph).size(), 1u);
  }
}

TEST(FoldConstants, ComputesChainsOfKnownValues) {
  GraphBuilder b;
  const ValueId x = b.input("x", {2});
  const ValueId sum =
      b.node("Add", {b.constant("a", floats({2}, {1, 2})), b.constant("c", floats({2}, {3, 4}))}, "sum");
  const ValueId product = b.node("Mul", {sum, b.constant("d", floats({1}, {2}))}, "product");
  b.output(b.node("Add", {x, product}, "y"));
  EXPECT_EQ(expect_same_function(b, "fold_constants", {floats({2}, {0, 1})}), 2);
  EXPECT_EQ(values_of(*b.graph.value(*b.graph.find_value("product")).constant), (Floats{8, 12}));
  EXPECT_FALSE(b.graph.find_value("a"));  // nobody reads it any more
}

TEST(FoldConstants, LeavesQuantizeAndDequantizeAlone) {
  GraphBuilder b;
  const std::int8_t codes[] = {1, 2};
  const std::int8_t zero[] = {0};
  const ValueId w =
      b.node("DequantizeLinear",
             {b.constant("codes", Tensor::of<std::int8_t>({2}, codes)), b.constant("scale", Tensor::scalar(0.5f)),
              b.constant("zero", Tensor::of<std::int8_t>({}, zero))},
             "w");
  b.output(b.node("Add", {b.input("x", {2}), w}, "y"));
  EXPECT_EQ(run_pass(b.graph, "fold_constants").value(), 0);
  EXPECT_EQ(count_ops(b.graph, Op::DequantizeLinear), 1);
}

TEST(FoldConstants, KeepsNodesThatWriteAGraphOutput) {
  GraphBuilder b;
  b.output(b.node("Constant", {}, "y", {{"value", floats({1}, {1})}}));
  EXPECT_EQ(expect_same_function(b, "fold_constants", {}), 0);
}

TEST(FoldConstants, LeavesSharedConstantsToTheirOtherReaders) {
  GraphBuilder b;
  const ValueId w = b.constant("w", floats({2}, {1, 2}));
  const ValueId negative = b.node("Neg", {w}, "negative");
  const ValueId sum = b.node("Add", {b.input("x", {2}), negative}, "sum");
  b.output(b.node("Mul", {sum, w}, "y"));
  EXPECT_EQ(expect_same_function(b, "fold_constants", {floats({2}, {5, 6})}), 1);
  EXPECT_EQ(values_of(*b.graph.value(w).constant), (Floats{1, 2}));
}

TEST(FoldConstants, ComputesShapesOnlyWhereInputsHaveDeclaredSizes) {
  for (const bool is_static : {true, false}) {
    GraphBuilder b;
    const ValueId x = b.input("x", {is_static ? 2 : -1, 3});
    const ValueId shape = b.node("Shape", {b.node("Relu", {x}, "r")}, "shape", {}, "", DType::i64);
    b.output(b.node("Reshape", {b.node("Abs", {x}, "a"), shape}, "y"));
    EXPECT_EQ(expect_same_function(b, "fold_constants", {varied({2, 3})}), is_static ? 1 : 0);
    EXPECT_EQ(count_ops(b.graph, Op::Shape), is_static ? 0 : 1);
  }
}

TEST(FoldConstants, RefusesToGrowPast64MiB) {
  GraphBuilder b;
  const ValueId big = b.node("ConstantOfShape", {b.constant("s", ints({1 << 13, 1 << 12}))}, "big");  // 128 MiB
  b.output(b.node("Add", {b.input("x", {1}), big}, "y"));
  EXPECT_EQ(run_pass(b.graph, "fold_constants").value(), 0);
}

TEST(FoldConstants, LeavesAFailingNodeToTheRun) {
  GraphBuilder b;
  const ValueId bad = b.node("Gather", {b.constant("t", floats({2}, {1, 2})), b.constant("i", ints({9}))}, "bad");
  b.output(b.node("Add", {b.input("x", {1}), bad}, "y"));
  EXPECT_EQ(run_pass(b.graph, "fold_constants").value(), 0);
  EXPECT_EQ(count_ops(b.graph, Op::Gather), 1);
}

}  // namespace
}  // namespace ctk::test
