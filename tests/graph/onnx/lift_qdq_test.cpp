#include "graph/onnx/lift_qdq.h"

#include "graph/layer.h"
#include "tests/graph/onnx/model_maker.h"

namespace ctk::graph::onnx::test {
namespace {

struct Options {
  int activation_type = 2;  // uint8; 3: int8
  int zero_point = 10;
  int weight_type = 3;
  std::vector<int> weight = {1, -2, 3, 127, -127, 0};  // [3,2]
  bool per_channel = true;
  std::int64_t axis = 1;
  int weight_zero = 0;
};

// x[1,3] -> Q -> DQ -> Gemm(., DQ(W[3,2]), DQ(b)) -> h -> Q -> DQ -> y
ModelMaker gemm_qdq(const Options& o = {}) {
  ModelMaker model(21, 10);
  model.input("x", {1, 3});
  model.output("y", {1, 2});
  model.floats("xs", {}, {0.5f});
  model.codes("xz", {}, o.activation_type, {o.zero_point});
  model.floats("ys", {}, {0.25f});
  model.codes("yz", {}, o.activation_type, {o.zero_point});
  model.codes("W", {3, 2}, o.weight_type, o.weight);
  const int channels = o.axis == 1 || o.axis == -1 ? 2 : 3;
  model.floats(
      "Ws", o.per_channel ? std::vector<std::int64_t>{channels} : std::vector<std::int64_t>{},
      o.per_channel ? std::vector<float>(static_cast<std::size_t>(channels), 0.125f) : std::vector<float>{0.125f});
  if (o.per_channel) model.proto.mutable_graph()->mutable_initializer(5)->set_float_data(0, 0.5f);
  model.codes("Wz", {}, o.weight_type, {o.weight_zero});
  model.codes("b", {2}, 6, {4, -8});
  model.floats("bs", {}, {0.0625f});
  model.node("QuantizeLinear", {"x", "xs", "xz"}, {"xq"}, "q1");
  model.node("DequantizeLinear", {"xq", "xs", "xz"}, {"xd"}, "dq1");
  const bool has_zero = o.weight_zero != 0 && !o.per_channel;
  auto& dq = model.node("DequantizeLinear",
                        has_zero ? std::vector<std::string>{"W", "Ws", "Wz"} : std::vector<std::string>{"W", "Ws"},
                        {"Wd"}, "dqw");
  if (o.per_channel) set_int(dq, "axis", o.axis);
  model.node("DequantizeLinear", {"b", "bs"}, {"bd"}, "dqb");
  model.node("Gemm", {"xd", "Wd", "bd"}, {"h"}, "layer");
  model.node("QuantizeLinear", {"h", "ys", "yz"}, {"hq"}, "q2");
  model.node("DequantizeLinear", {"hq", "ys", "yz"}, {"y"}, "dq2");
  return model;
}

Graph lifted(const ModelMaker& model, int expected) {
  Graph graph = must_read(model);
  const auto count = lift_quantization(graph);
  EXPECT_TRUE(count.has_value()) << (count ? "" : count.error().message);
  EXPECT_EQ(count ? *count : -1, expected);
  EXPECT_TRUE(verify(graph).has_value());
  return graph;
}

TEST(LiftQdq, TurnsAWholeLayerIntoNotes) {
  const Graph graph = lifted(gemm_qdq(), 4);
  ASSERT_EQ(graph.order().size(), 1u);
  const Node& gemm = graph.node(graph.order()[0]);
  EXPECT_EQ(to_string(gemm.scheme), "w8a8_c");
  EXPECT_EQ(graph.value(gemm.inputs[0]).name, "x");
  EXPECT_EQ(graph.value(gemm.inputs[0]).activation_quant, (ActivationQuant{0.5f, 10}));
  const Value& W = graph.value(gemm.inputs[1]);
  EXPECT_EQ(W.name, "W");
  ASSERT_NE(W.quantized, nullptr);
  EXPECT_FALSE(W.constant.has_value());
  EXPECT_EQ(W.dtype, DType::f32);
  EXPECT_EQ(W.quantized->channel_axis, 1);
  EXPECT_EQ(W.quantized->scales, (std::vector<float>{0.5f, 0.125f}));
  EXPECT_EQ(unpack_codes(*W.quantized), (std::vector<std::int8_t>{1, -2, 3, 127, -127, 0}));
  // 4 * 0.0625 and -8 * 0.0625
  const Value& bias = graph.value(gemm.inputs[2]);
  EXPECT_EQ(bias.constant->values<float>()[0], 0.25f);
  EXPECT_EQ(bias.constant->values<float>()[1], -0.5f);
  // The graph output keeps its name and now comes from the layer itself.
  EXPECT_EQ(graph.value(graph.outputs()[0]).name, "y");
  EXPECT_EQ(gemm.outputs[0], graph.outputs()[0]);
  EXPECT_EQ(graph.value(graph.outputs()[0]).activation_quant, (ActivationQuant{0.25f, 10}));
  EXPECT_TRUE(layer_of(graph, graph.order()[0]).has_value());
}

TEST(LiftQdq, MovesInt8ActivationsUpBy128) {
  const Graph graph = lifted(gemm_qdq({.activation_type = 3, .zero_point = -3}), 4);
  EXPECT_EQ(graph.value(*graph.find_value("x")).activation_quant, (ActivationQuant{0.5f, 125}));
}

TEST(LiftQdq, TakesFourBitWeights) {
  // [3,2] codes, two a byte: 1,-2 | 7,-8 | 0,3
  const Graph graph = lifted(gemm_qdq({.weight_type = 22, .weight = {0xe1, 0x87, 0x30}}), 4);
  const Node& gemm = graph.node(graph.order()[0]);
  EXPECT_EQ(to_string(gemm.scheme), "w4a8_c");
  EXPECT_EQ(graph.value(gemm.inputs[1]).quantized->codes.dtype(), DType::i4);
  EXPECT_EQ(unpack_codes(*graph.value(gemm.inputs[1]).quantized), (std::vector<std::int8_t>{1, -2, 7, -8, 0, 3}));
}

TEST(LiftQdq, TakesUint8WeightsAround128AndOneScale) {
  const Graph graph = lifted(
      gemm_qdq({.weight_type = 2, .weight = {129, 126, 131, 255, 1, 128}, .per_channel = false, .weight_zero = 128}),
      4);
  const Node& gemm = graph.node(graph.order()[0]);
  EXPECT_EQ(to_string(gemm.scheme), "w8a8_t");
  EXPECT_EQ(unpack_codes(*graph.value(gemm.inputs[1]).quantized), (std::vector<std::int8_t>{1, -2, 3, 127, -127, 0}));
}

// FAULTS B018: an axis counted from the end.
TEST(LiftQdq, CountsANegativeAxisFromTheEnd) {
  const Graph graph = lifted(gemm_qdq({.axis = -1}), 4);
  EXPECT_EQ(graph.value(*graph.find_value("W")).quantized->channel_axis, 1);
}

TEST(LiftQdq, LeavesWeightsThatNotesCannotSay) {
  // -128 is outside of the symmetric range; scales along the inputs.
  for (const Options& options : {Options{.weight = {1, -2, 3, 127, -128, 0}}, Options{.axis = 0}}) {
    const Graph graph = lifted(gemm_qdq(options), 3);
    ASSERT_EQ(nodes_of(graph, "DequantizeLinear").size(), 1u);
    const Node& gemm = graph.node(nodes_of(graph, "Gemm")[0]);
    EXPECT_EQ(to_string(gemm.scheme), "fp32");
  }
}

TEST(LiftQdq, TakesZeroPointsThatSymmetricCodesCannotHold) {
  // 255 - 100 is beyond 127: the weight keeps its zero point, and its input is read as floats.
  const Graph graph =
      lifted(gemm_qdq({.weight_type = 2, .weight = {1, 2, 3, 4, 5, 255}, .per_channel = false, .weight_zero = 100}), 4);
  const Node& gemm = graph.node(nodes_of(graph, "Gemm")[0]);
  EXPECT_EQ(to_string(gemm.scheme), "w8a16_t_affine");
  const Tensor real = dequantize(*graph.value(gemm.inputs[1]).quantized);
  EXPECT_EQ(real.values<float>()[0], -99 * 0.125f);
  EXPECT_EQ(real.values<float>()[5], 155 * 0.125f);
}

TEST(LiftQdq, LeavesAValueThatIsAlsoReadUnrounded) {
  ModelMaker model = gemm_qdq();
  model.output("z", {1, 3});
  model.node("Relu", {"x"}, {"z"}, "raw reader");
  const Graph graph = lifted(model, 3);
  EXPECT_FALSE(graph.value(*graph.find_value("x")).activation_quant.has_value());
  EXPECT_EQ(nodes_of(graph, "QuantizeLinear").size(), 1u);
}

TEST(LiftQdq, LeavesPairsOfDifferentParametersAndCodesOthersRead) {
  ModelMaker different = gemm_qdq();
  different.proto.mutable_graph()->mutable_node(1)->set_input(1, "ys");
  EXPECT_EQ(nodes_of(lifted(different, 3), "QuantizeLinear").size(), 1u);

  ModelMaker shown = gemm_qdq();
  shown.output("xq", {1, 3}, 2);
  EXPECT_EQ(nodes_of(lifted(shown, 3), "QuantizeLinear").size(), 1u);
}

TEST(LiftQdq, JoinsEqualPairsOfOneValue) {
  ModelMaker model = gemm_qdq();
  model.output("z", {1, 3});
  model.node("QuantizeLinear", {"x", "xs", "xz"}, {"xq2"}, "q3");
  model.node("DequantizeLinear", {"xq2", "xs", "xz"}, {"xd2"}, "dq3");
  model.node("Relu", {"xd2"}, {"z"}, "relu");
  const Graph graph = lifted(model, 5);
  const Node& relu = graph.node(nodes_of(graph, "Relu")[0]);
  EXPECT_EQ(graph.value(relu.inputs[0]).name, "x");
  EXPECT_TRUE(nodes_of(graph, "QuantizeLinear").empty());
}

TEST(LiftQdq, SharesScalesOverTheGroupsOfAConvTranspose) {
  // W[4,2,1,1], group 2: four output channels, the file has two scales along axis 1.
  ModelMaker model(13);
  model.input("x", {1, 4, 1, 1});
  model.output("y", {1, 4, 1, 1});
  model.codes("W", {4, 2, 1, 1}, 3, {1, 2, 3, 4, 5, 6, 7, 8});
  model.floats("s", {2}, {0.5f, 2.0f});
  set_int(model.node("DequantizeLinear", {"W", "s"}, {"Wd"}, "dq"), "axis", 1);
  set_int(model.node("ConvTranspose", {"x", "Wd"}, {"y"}, "layer"), "group", 2);
  const Graph graph = lifted(model, 1);
  const auto W = graph.value(*graph.find_value("W")).quantized;
  ASSERT_NE(W, nullptr);
  EXPECT_EQ(W->group_count, 2);
  EXPECT_EQ(W->scales, (std::vector<float>{0.5f, 2.0f, 0.5f, 2.0f}));
  const Tensor real = dequantize(*W);
  EXPECT_EQ(real.values<float>()[0], 0.5f);
  EXPECT_EQ(real.values<float>()[7], 16.0f);
  EXPECT_EQ(to_string(graph.node(graph.order()[0]).scheme), "w8a16_c");
}

TEST(LiftQdq, LeavesFloatModelsAlone) {
  ModelMaker model;
  model.input("x", {1});
  model.output("y", {1});
  model.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(lifted(model, 0).order().size(), 1u);
}

}  // namespace
}  // namespace ctk::graph::onnx::test
