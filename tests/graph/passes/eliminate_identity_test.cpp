#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/pass_checks.h"

namespace ctk::test {
namespace {

using graph::NodeId;
using graph::ValueId;

constexpr std::string_view kPass = "eliminate_identity";

// x -> Relu -> (the node made) -> Neg -> y
template <class Make>
int removed_between(const Shape& declared, const Shape& fed, Make make) {
  GraphBuilder b;
  const ValueId inner = b.node("Relu", {b.input("x", declared)}, "inner");
  b.output(b.node("Neg", {make(b, inner)}, "y"));
  const int changes = expect_same_function(b, kPass, {varied(fed)});
  EXPECT_EQ(b.graph.order().size(), 3u - static_cast<std::size_t>(changes));
  return changes;
}

TEST(EliminateIdentity, RemovesNodesThatChangeNothing) {
  const Shape s = {2, 3};
  EXPECT_EQ(removed_between(s, s, [](auto& b, ValueId v) { return b.node("Identity", {v}, "o"); }), 1);
  EXPECT_EQ(removed_between(s, s, [](auto& b, ValueId v) { return b.node("Dropout", {v}, "o"); }), 1);
  EXPECT_EQ(removed_between(s, s,
                            [](auto& b, ValueId v) {
                              return b.node("Cast", {v}, "o", {{"to", std::int64_t{1}}});
                            }),
            1);
  EXPECT_EQ(removed_between(s, s,
                            [](auto& b, ValueId v) {
                              return b.node("Pad", {v, b.constant("p", ints({0, 0, 0, 0}))}, "o");
                            }),
            1);
  EXPECT_EQ(removed_between(
                s, s,
                [](auto& b, ValueId v) {
                  return b.node("Slice", {v, b.constant("s", ints({0})), b.constant("e", ints({INT64_MAX}))}, "o");
                }),
            1);
  EXPECT_EQ(removed_between(s, s,
                            [](auto& b, ValueId v) {
                              return b.node("Slice", {v, b.constant("s", ints({0})), b.constant("e", ints({2}))}, "o");
                            }),
            1);
  EXPECT_EQ(removed_between(s, s,
                            [](auto& b, ValueId v) {
                              return b.node("Reshape", {v, b.constant("s", ints({2, 3}))}, "o");
                            }),
            1);
  EXPECT_EQ(removed_between(s, s,
                            [](auto& b, ValueId v) {
                              return b.node("Transpose", {v}, "o", {{"perm", Ints{0, 1}}});
                            }),
            1);
  EXPECT_EQ(removed_between(s, s, [](auto& b, ValueId v) { return b.node("Flatten", {v}, "o"); }), 1);
  // B017 (a)
  EXPECT_EQ(removed_between(s, s,
                            [](auto& b, ValueId v) {
                              return b.node("Concat", {v}, "o", {{"axis", std::int64_t{1}}});
                            }),
            1);
}

TEST(EliminateIdentity, KeepsNodesThatChangeSomething) {
  const Shape s = {3, 3};
  EXPECT_EQ(removed_between(
                s, s,
                [](auto& b, ValueId v) {
                  return b.node("Pad", {v, b.constant("p", ints({1, 0, -1, 0}))}, "o");  // same shape, other contents
                }),
            0);
  EXPECT_EQ(removed_between(s, s,
                            [](auto& b, ValueId v) {
                              return b.node("Slice",
                                            {v, b.constant("s", ints({-1})), b.constant("e", ints({INT64_MIN})),
                                             b.constant("a", ints({0})), b.constant("t", ints({-1}))},
                                            "o");  // reversed
                            }),
            0);
  EXPECT_EQ(removed_between(s, s, [](auto& b, ValueId v) { return b.node("Transpose", {v}, "o"); }), 0);
}

TEST(EliminateIdentity, TrustsShapesOnlyWhenEveryRunHasThem) {
  // With N unknown, the first 2 rows are not all rows.
  EXPECT_EQ(removed_between({-1, 3}, {2, 3},
                            [](auto& b, ValueId v) {
                              return b.node("Slice", {v, b.constant("s", ints({0})), b.constant("e", ints({2}))}, "o");
                            }),
            0);
  // A list of columns stays a list of columns whatever N is.
  EXPECT_EQ(removed_between({-1, 3}, {2, 3}, [](auto& b, ValueId v) { return b.node("Flatten", {v}, "o"); }), 1);
}

// B003: graph outputs keep their names, and the layer keeps its address.
TEST(EliminateIdentity, KeepsTheNameOfAGraphOutput) {
  GraphBuilder b;
  const ValueId x = b.input("x", {2, 4});
  const ValueId inner = b.node("MatMul", {x, b.constant("w", varied({4, 3}))}, "inner");
  const ValueId logits = b.node("Identity", {inner}, "logits");
  b.output(logits);
  b.output(b.node("Softmax", {logits}, "prob"));
  b.graph.node(b.graph.order().front()).name = "";  // so its address is its output's name
  EXPECT_EQ(expect_same_function(b, kPass, {varied({2, 4}, 3)}), 1);
  ASSERT_EQ(b.graph.order().size(), 2u);
  EXPECT_EQ(b.graph.address(b.graph.order().front()), "inner");
}

TEST(EliminateIdentity, KeepsTheNodeBetweenAnInputAndAnOutput) {
  GraphBuilder b;
  b.output(b.node("Identity", {b.input("x", {2})}, "y"));
  EXPECT_EQ(expect_same_function(b, kPass, {varied({2})}), 0);

  GraphBuilder two;
  const ValueId inner = two.node("Relu", {two.input("x", {2})}, "inner");
  two.output(inner);
  two.output(two.node("Identity", {inner}, "copy"));
  EXPECT_EQ(expect_same_function(two, kPass, {varied({2})}), 0);
}

TEST(EliminateIdentity, KeepsANameThatASubgraphReads) {
  GraphBuilder b;
  const ValueId copy = b.node("Identity", {b.node("Relu", {b.input("x", {2})}, "inner")}, "copy");
  graph::Node loop;
  loop.op_type = "Loop";
  loop.outputs = {b.graph.add_value("z", DType::f32)};
  loop.captured = {copy};
  b.graph.add_node(loop);
  b.output(b.node("Neg", {copy}, "y"));
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 0);
}

TEST(EliminateIdentity, KeepsDropoutWhoseMaskIsRead) {
  GraphBuilder b;
  const auto outputs = b.nodes("Dropout", {b.node("Relu", {b.input("x", {2})}, "r")}, {"o", "mask"});
  b.graph.value(outputs[1]).dtype = DType::boolean;
  b.output(b.node("Neg", {outputs[0]}, "y"));
  b.output(outputs[1]);
  EXPECT_EQ(expect_same_function(b, kPass, {varied({2})}), 0);
}

}  // namespace
}  // namespace ctk::test
