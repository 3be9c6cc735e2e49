#include <gtest/gtest.h>

#include "tests/support/pass_checks.h"

namespace ctk::test {
namespace {

using graph::NodeId;
using graph::ValueId;

constexpr std::string_view kPass = "absorb_residuals";

NodeId host_of(const GraphBuilder& b, const std::string& output) {
  return b.graph.node(producer_of(b.graph, output)).absorbed_by;
}

ValueId conv(GraphBuilder& b, ValueId x, const std::string& output) {
  return b.node("Conv", {x, b.constant("w_" + output, varied({2, 2, 1, 1}))}, output);
}

TEST(AbsorbResiduals, NotesTheConvBeforeAnAddWithItsInput) {
  GraphBuilder b;
  const ValueId x = b.input("x", {-1, 2, 3, 3});
  b.output(b.node("Relu", {b.node("Add", {conv(b, x, "c"), x}, "s")}, "y"));
  EXPECT_EQ(run_pass(b.graph, "absorb_activations").value(), 1);
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 1);
  EXPECT_EQ(host_of(b, "s"), producer_of(b.graph, "c"));
  EXPECT_EQ(host_of(b, "y"), producer_of(b.graph, "s"));  // the chain Conv, Add, Relu
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 0) << "a second run changes nothing";
}

TEST(AbsorbResiduals, PicksTheLaterOfTwoConvs) {
  for (const bool is_swapped : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.input("x", {1, 2, 3, 3});
    const ValueId first = conv(b, x, "first"), second = conv(b, x, "second");
    b.output(is_swapped ? b.node("Add", {second, first}, "y") : b.node("Add", {first, second}, "y"));
    EXPECT_EQ(run_pass(b.graph, kPass).value(), 1);
    EXPECT_EQ(host_of(b, "y"), producer_of(b.graph, "second"));
  }
}

// A shortcut that is written behind the main path, as exporters do for Slice and Pad.
TEST(AbsorbResiduals, MovesTheConvBehindALateOperand) {
  GraphBuilder b;
  const ValueId x = b.input("x", {1, 2, 3, 3});
  const ValueId c = conv(b, x, "c");
  const ValueId late = b.node("Neg", {b.node("Relu", {x}, "r")}, "late");
  b.output(b.node("Add", {c, late}, "y"));
  EXPECT_EQ(expect_same_function(b, kPass, {varied({1, 2, 3, 3})}), 1);
  const auto& order = b.graph.order();
  ASSERT_EQ(order.size(), 4u);
  EXPECT_EQ(order[2], producer_of(b.graph, "c"));
  EXPECT_EQ(host_of(b, "y"), order[2]);
  EXPECT_EQ(b.graph.address(order[2]), "Conv_c");
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 0) << "a second run changes nothing";
}

TEST(AbsorbResiduals, LeavesOperandsThatBroadcast) {
  for (const Shape& other : {Shape{1, 2, 1, 1}, Shape{1, 2, 3, 3}}) {
    GraphBuilder b;
    const ValueId x = b.input("x", {-1, 2, 3, 3}), row = b.input("row", other);
    b.output(b.node("Add", {conv(b, x, "c"), row}, "y"));
    EXPECT_EQ(run_pass(b.graph, kPass).value(), 0);
  }
}

TEST(AbsorbResiduals, LeavesAnOperandThatBroadcastsOverAnUnknownSize) {
  GraphBuilder b;
  graph::Graph& g = b.graph;
  const ValueId x = g.add_value("x", DType::f32, graph::DeclaredShape{{1, ""}, {2, ""}, {-1, "H"}, {3, ""}});
  g.add_input(x);
  b.output(b.node("Add", {conv(b, x, "c"), b.input("row", {1, 2, 1, 3})}, "y"));
  EXPECT_EQ(run_pass(g, kPass).value(), 0);
}

TEST(AbsorbResiduals, LeavesAConvThatIsReadElsewhere) {
  GraphBuilder b;
  const ValueId x = b.input("x", {1, 2, 3, 3});
  const ValueId c = conv(b, x, "c");
  b.output(b.node("Add", {c, x}, "y"));
  b.output(c);
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 0);

  GraphBuilder twice;
  const ValueId doubled = conv(twice, twice.input("x", {1, 2, 3, 3}), "c");
  twice.output(twice.node("Add", {doubled, doubled}, "y"));
  EXPECT_EQ(run_pass(twice.graph, kPass).value(), 0);
}

TEST(AbsorbResiduals, LeavesAConvWithAnActivationBeforeTheAdd) {
  GraphBuilder b;
  const ValueId x = b.input("x", {1, 2, 3, 3});
  const ValueId r = b.node("Relu", {conv(b, x, "c")}, "r");
  b.output(b.node("Add", {r, x}, "y"));
  EXPECT_EQ(run_pass(b.graph, "absorb_activations").value(), 1);
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 0);
}

}  // namespace
}  // namespace ctk::test
