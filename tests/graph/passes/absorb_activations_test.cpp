#include <gtest/gtest.h>

#include "tests/support/pass_checks.h"

namespace ctk::test {
namespace {

using graph::NodeId;
using graph::ValueId;

constexpr std::string_view kPass = "absorb_activations";

NodeId host_of(const GraphBuilder& b, const std::string& output) {
  return b.graph.node(producer_of(b.graph, output)).absorbed_by;
}

GraphBuilder with_activation(const std::string& op, const std::string& activation) {
  GraphBuilder b;
  const bool is_matrix = op == "Gemm" || op == "MatMul" || op == "Add";
  const ValueId x = b.input("x", is_matrix ? Shape{2, 2} : Shape{1, 2, 3, 3});
  const ValueId w = b.constant("w", varied(is_matrix ? Shape{2, 2} : Shape{2, 2, 1, 1}));
  std::vector<ValueId> inputs = {b.node(op, {x, w}, "h")};
  if (activation == "Clip") {
    inputs.push_back(b.constant("low", Tensor::scalar(0.0f)));
    inputs.push_back(b.constant("high", Tensor::scalar(6.0f)));
  }
  b.output(b.node(activation, inputs, "y"));
  return b;
}

TEST(AbsorbActivations, NotesTheLayerThatComputesTheActivation) {
  for (const char* op : {"Conv", "ConvTranspose", "Gemm", "MatMul", "Add"}) {
    for (const char* activation : {"Relu", "Clip"}) {
      GraphBuilder b = with_activation(op, activation);
      EXPECT_EQ(run_pass(b.graph, kPass).value(), 1) << op << " " << activation;
      EXPECT_EQ(host_of(b, "y"), producer_of(b.graph, "h")) << op << " " << activation;
      EXPECT_EQ(run_pass(b.graph, kPass).value(), 0) << "a second run changes nothing";
    }
  }
}

TEST(AbsorbActivations, LeavesActivationsBehindAnythingElse) {
  GraphBuilder b;
  b.output(b.node("Relu", {b.node("Neg", {b.input("x", {2})}, "h")}, "y"));
  b.output(b.node("Relu", {*b.graph.find_value("x")}, "z"));
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 0);
}

TEST(AbsorbActivations, LeavesALayerWhoseOutputIsReadElsewhere) {
  GraphBuilder output = with_activation("Conv", "Relu");
  output.output(*output.graph.find_value("h"));
  EXPECT_EQ(run_pass(output.graph, kPass).value(), 0);
  GraphBuilder reader = with_activation("Conv", "Relu");
  reader.output(reader.node("Neg", {*reader.graph.find_value("h")}, "z"));
  EXPECT_EQ(run_pass(reader.graph, kPass).value(), 0);
}

TEST(AbsorbActivations, LeavesAClipWhoseBoundIsComputed) {
  GraphBuilder b;
  const ValueId x = b.input("x", {2, 2}), high = b.input("high", {});
  const ValueId h = b.node("MatMul", {x, b.constant("w", varied({2, 2}))}, "h");
  b.output(b.node("Clip", {h, ValueId{}, high}, "y"));
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 0);
}

TEST(AbsorbActivations, LeavesAnOutputThatIsStoredAsCodes) {
  GraphBuilder b = with_activation("Conv", "Relu");
  b.graph.value(*b.graph.find_value("h")).activation_quant = ActivationQuant{0.1f, 128};
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 0);
}

TEST(AbsorbActivations, TakesBackANoteThatNoLongerHolds) {
  GraphBuilder b = with_activation("Conv", "Relu");
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 1);
  b.output(*b.graph.find_value("h"));
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 1);
  EXPECT_FALSE(host_of(b, "y").is_valid());
}

}  // namespace
}  // namespace ctk::test
