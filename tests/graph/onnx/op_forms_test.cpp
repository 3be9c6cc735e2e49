// Older operator forms: what reading makes of them, and that writing for the same opset gives the old form back.
#include "graph/onnx/op_map.h"

#include <algorithm>
#include <set>

#include "tests/graph/onnx/one_node.h"

namespace ctk::graph::onnx::test {
namespace {

TEST(OpMap, HasARowForEveryOperatorAndNoOther) {
  std::set<std::string> known{"Upsample"};
#define CTK_OP(name) known.insert(#name);
#include "graph/ops.def"
#undef CTK_OP
  std::set<std::string> rows;
  for (const OpRow& row : op_rows()) {
    EXPECT_TRUE(rows.insert(std::string(row.name)).second) << row.name;
    EXPECT_GE(row.since, kOldestOpset);
    EXPECT_LE(row.since, kNewestOpset);
    for (const AttributeRule& rule : row.attributes) EXPECT_LE(rule.since, rule.until) << row.name << "." << rule.name;
  }
  EXPECT_EQ(rows, known);
}

// FAULTS B010: axes as attribute (11) and as input (13).
TEST(OpForms, SqueezeAndUnsqueezeAxesBecomeOneDimensionalInputs) {
  for (const char* op : {"Squeeze", "Unsqueeze"}) {
    OneNode model(11, op);
    set_ints(model.self(), "axes", {std::string(op) == "Squeeze" ? 0 : -1});
    const Graph graph = must_read(model);
    const NodeId id = only(graph);
    ASSERT_EQ(graph.node(id).inputs.size(), 2u);
    const Tensor& axes = *graph.value(graph.node(id).inputs[1]).constant;
    EXPECT_EQ(axes.dtype(), DType::i64);
    EXPECT_EQ(axes.shape(), Shape{1});
    EXPECT_EQ(graph.node(id).attributes.find("axes"), nullptr);

    EXPECT_EQ(written_node(graph, 11).SerializeAsString(), model.self().SerializeAsString());
    EXPECT_EQ(must_write(graph, 11).graph().initializer_size(), 0);
    const auto raised = must_write(graph, 21);
    ASSERT_EQ(raised.graph().node(0).input_size(), 2);
    ASSERT_EQ(raised.graph().initializer_size(), 1);
    EXPECT_EQ(raised.graph().initializer(0).dims_size(), 1);
    EXPECT_EQ(raised.graph().initializer(0).dims(0), 1);
    EXPECT_EQ(raised.graph().node(0).attribute_size(), 0);
  }
}

TEST(OpForms, SqueezeWithoutAxesStaysWithoutAxes) {
  for (const int opset : {11, 13}) {
    const Graph graph = must_read(OneNode(opset, "Squeeze"));
    EXPECT_EQ(graph.node(only(graph)).inputs.size(), 1u);
    EXPECT_EQ(written_node(graph, 21).input_size(), 1);
  }
}

TEST(OpForms, RefusesAxesAsAttributeWhereTheyAreAnInput) {
  OneNode model(13, "Squeeze");
  set_ints(model.self(), "axes", {0});
  expect_error(read(model), ErrorCode::input, {"node (Squeeze)", "\"axes\"", "opset 13"});
}

TEST(OpForms, ReductionsChangeAtTheirOwnOpsets) {
  OneNode mean(17, "ReduceMean");
  set_ints(mean.self(), "axes", {2});
  const Graph graph = must_read(mean);
  EXPECT_EQ(ints_at(graph, only(graph), 1), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(ints_of(written_node(graph, 13), "axes"), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(written_node(graph, 18).input_size(), 2);

  OneNode sum(13, "ReduceSum", {"x", "axes"});
  sum.ints("axes", {-1});
  const Graph sums = must_read(sum);
  EXPECT_EQ(written_node(sums, 13).input(1), "axes");
  EXPECT_EQ(ints_of(written_node(sums, 12), "axes"), (std::vector<std::int64_t>{-1}));
  EXPECT_EQ(ints_of(written_node(sums, 9), "axes"), (std::vector<std::int64_t>{2}));  // rank 3, counted from the front
}

TEST(OpForms, ComputedAxesCannotGoBackBehindOpset13) {
  OneNode model(13, "Unsqueeze", {"x", "axes"});
  model.input("axes", {1}, 7);
  expect_error(write_model_bytes(must_read(model), {12, ""}), ErrorCode::input,
               {"node (Unsqueeze)", "opset 13", "opset 12"});
}

TEST(OpForms, ClipBoundsBecomeInputsAndBack) {
  OneNode model(9, "Clip");
  set_float(model.self(), "max", 6.0f);
  const Graph graph = must_read(model);
  const Node& node = graph.node(only(graph));
  ASSERT_EQ(node.inputs.size(), 3u);
  EXPECT_FALSE(node.inputs[1].is_valid());
  EXPECT_EQ(graph.value(node.inputs[2]).constant->values<float>()[0], 6.0f);
  EXPECT_TRUE(graph.value(node.inputs[2]).constant->shape().empty());
  EXPECT_EQ(written_node(graph, 9).SerializeAsString(), model.self().SerializeAsString());
  EXPECT_EQ(written_node(graph, 13).input_size(), 3);
}

TEST(OpForms, PadBecomesInputsAndBack) {
  OneNode model(10, "Pad");
  set_text(model.self(), "mode", "constant");
  set_float(model.self(), "value", 1.5f);
  set_ints(model.self(), "pads", {0, 0, 1, 0, 0, 2});
  const Graph graph = must_read(model);
  EXPECT_EQ(ints_at(graph, only(graph), 1), (std::vector<std::int64_t>{0, 0, 1, 0, 0, 2}));
  EXPECT_EQ(written_node(graph, 10).SerializeAsString(), model.self().SerializeAsString());
  EXPECT_EQ(written_node(graph, 11).input_size(), 3);
}

TEST(OpForms, PadOfSomeAxesSpreadsToAllBeforeOpset18) {
  OneNode model(18, "Pad", {"x", "pads", "", "axes"});
  model.ints("pads", {1, 2});
  model.ints("axes", {-1});
  const Graph graph = must_read(model);
  const auto written = must_write(graph, 17);
  EXPECT_EQ(written.graph().node(0).input_size(), 2);
  ASSERT_EQ(written.graph().initializer_size(), 1);
  EXPECT_EQ(written.graph().initializer(0).dims(0), 6);
  EXPECT_EQ(ints_of(written_node(graph, 10), "pads"), (std::vector<std::int64_t>{0, 0, 1, 0, 0, 2}));
}

TEST(OpForms, SliceBecomesInputsAndBack) {
  OneNode model(9, "Slice");
  set_ints(model.self(), "starts", {1});
  set_ints(model.self(), "ends", {3});
  set_ints(model.self(), "axes", {2});
  const Graph graph = must_read(model);
  EXPECT_EQ(ints_at(graph, only(graph), 1), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(ints_at(graph, only(graph), 2), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(ints_at(graph, only(graph), 3), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(written_node(graph, 9).SerializeAsString(), model.self().SerializeAsString());
  EXPECT_EQ(written_node(graph, 10).input_size(), 4);
}

TEST(OpForms, SliceWithStepsNeedsOpset10) {
  OneNode model(10, "Slice", {"x", "s", "e", "a", "t"});
  model.ints("s", {3});
  model.ints("e", {0});
  model.ints("a", {2});
  model.ints("t", {-1});
  expect_error(write_model_bytes(must_read(model), {9, ""}), ErrorCode::input, {"node (Slice)", "opset 10", "opset 9"});
}

TEST(OpForms, SplitTakesSizesOrTheNumberOfOutputs) {
  OneNode even(11, "Split");
  even.self().add_output("z");
  set_int(even.self(), "axis", 2);
  const Graph graph = must_read(even);
  EXPECT_EQ(graph.node(only(graph)).attributes.get_int("num_outputs", 0), 2);
  EXPECT_EQ(written_node(graph, 11).SerializeAsString(), even.self().SerializeAsString());
  EXPECT_EQ(written_node(graph, 18).attribute_size(), 2);

  OneNode sized(11, "Split");
  sized.self().add_output("z");
  set_int(sized.self(), "axis", 2);
  set_ints(sized.self(), "split", {1, 3});
  const Graph sizes = must_read(sized);
  EXPECT_EQ(ints_at(sizes, only(sizes), 1), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(written_node(sizes, 11).SerializeAsString(), sized.self().SerializeAsString());

  // Since 18 the last part may be smaller: 4 = 2 + 2, but 5 = 3 + 2 needs sizes before.
  OneNode uneven(18, "Split", {"x"}, {1, 1, 5});
  uneven.self().add_output("z");
  set_int(uneven.self(), "axis", -1);
  set_int(uneven.self(), "num_outputs", 2);
  const auto written = written_node(must_read(uneven), 11);
  EXPECT_EQ(ints_of(written, "split"), (std::vector<std::int64_t>{3, 2}));
}

TEST(OpForms, SoftmaxOverTheLastDimensionKeepsItsAxis) {
  OneNode model(11, "Softmax", {"x"}, {2, 3});
  const Graph graph = must_read(model);
  EXPECT_EQ(graph.node(only(graph)).attributes.get_int("axis", -99), 1);
  EXPECT_EQ(ints_of(written_node(graph, 13), "axis"), std::vector<std::int64_t>{});
  EXPECT_EQ(written_node(graph, 9).attribute(0).i(), 1);
}

TEST(OpForms, OldSoftmaxOverSeveralDimensionsIsFlattenedAroundIt) {
  OneNode model(11, "Softmax", {"x"}, {2, 3, 4});  // axis 1: over 12 numbers
  const Graph graph = must_read(model);
  std::vector<std::string> ops;
  for (NodeId id : graph.order()) ops.push_back(graph.node(id).op_type);
  EXPECT_EQ(ops, (std::vector<std::string>{"Shape", "Flatten", "Softmax", "Reshape"}));
  EXPECT_EQ(graph.node(graph.order()[1]).attributes.get_int("axis", 0), 1);
  EXPECT_EQ(graph.node(graph.order()[2]).attributes.get_int("axis", 0), -1);
  EXPECT_EQ(graph.node(graph.order()[2]).name, "node");
  EXPECT_EQ(graph.value(graph.node(graph.order()[3]).outputs[0]).name, "y");
  EXPECT_EQ(must_write(graph, 11).graph().node_size(), 4);
}

TEST(OpForms, NewSoftmaxOverAMiddleDimensionCannotGoBack) {
  OneNode model(13, "Softmax", {"x"}, {2, 3, 4});
  set_int(model.self(), "axis", 1);
  expect_error(write_model_bytes(must_read(model), {12, ""}), ErrorCode::input,
               {"node (Softmax)", "opset 13", "opset 12"});
}

TEST(OpForms, BatchNormalizationDropsUnusedTrainingOutputsOnly) {
  const std::vector<std::string> inputs{"x", "s", "b", "m", "v"};
  OneNode model(9, "BatchNormalization", inputs);
  for (const char* name : {"s", "b", "m", "v"}) model.floats(name, {1}, {1});
  for (const char* name : {"mean", "var", "saved_mean", "saved_var"}) model.self().add_output(name);
  const Graph graph = must_read(model);
  EXPECT_EQ(graph.node(only(graph)).outputs.size(), 1u);
  EXPECT_FALSE(graph.find_value("saved_var").has_value());
  ASSERT_EQ(graph.reader_notes.size(), 1u);
  EXPECT_NE(graph.reader_notes[0].find("node (BatchNormalization): unused training outputs"), std::string::npos);

  model.output("mean", {1});
  expect_error(read(model), ErrorCode::input, {"node (BatchNormalization)", "\"mean\"", "inference"});
}

TEST(OpForms, DropoutRatioBecomesAnInputAndBack) {
  OneNode model(10, "Dropout");
  set_float(model.self(), "ratio", 0.25f);
  const Graph graph = must_read(model);
  EXPECT_EQ(graph.value(graph.node(only(graph)).inputs[1]).constant->values<float>()[0], 0.25f);
  EXPECT_EQ(written_node(graph, 10).SerializeAsString(), model.self().SerializeAsString());
  EXPECT_EQ(written_node(graph, 13).input_size(), 2);
}

TEST(OpForms, UpsampleBecomesResizeAndBack) {
  OneNode model(9, "Upsample", {"x", "scales"});
  model.floats("scales", {3}, {1, 1, 2});
  set_text(model.self(), "mode", "nearest");
  const Graph graph = must_read(model);
  const Node& node = graph.node(only(graph));
  EXPECT_EQ(node.op, Op::Resize);
  ASSERT_EQ(node.inputs.size(), 3u);
  EXPECT_FALSE(node.inputs[1].is_valid());
  EXPECT_EQ(node.attributes.get_string("coordinate_transformation_mode", ""), "asymmetric");
  EXPECT_EQ(node.attributes.get_string("nearest_mode", ""), "floor");
  EXPECT_EQ(written_node(graph, 9).SerializeAsString(), model.self().SerializeAsString());
  EXPECT_EQ(written_node(graph, 10).op_type(), "Resize");
  EXPECT_EQ(written_node(graph, 10).input_size(), 2);
  EXPECT_EQ(written_node(graph, 11).input_size(), 3);
  EXPECT_NE(written_node(graph, 11).input(1), "");  // opset 11 wants an empty tensor
  EXPECT_EQ(written_node(graph, 13).input(1), "");
}

// Rounding is a matter of mode nearest: linear may shrink one axis and enlarge another, back and forth.
TEST(OpForms, OldLinearResizeMayShrinkAndEnlarge) {
  OneNode model(10, "Resize", {"x", "scales"});
  model.floats("scales", {3}, {1, 0.5, 2});
  set_text(model.self(), "mode", "linear");
  const Graph graph = must_read(model);
  EXPECT_EQ(graph.node(only(graph)).attributes.find("nearest_mode"), nullptr);
  EXPECT_EQ(written_node(graph, 10).SerializeAsString(), model.self().SerializeAsString());
  expect_error(write_model_bytes(graph, {9, ""}), ErrorCode::input, {"node (Resize)", "opset 10", "opset 9"});

  model.self().mutable_attribute(0)->set_s("nearest");
  expect_error(read(model), ErrorCode::input, {"node (Resize)", "nearest", "below opset 11"});
}

TEST(OpForms, ResizeWithEmptyRoiAndScalesOmitsThem) {
  OneNode model(11, "Resize", {"x", "roi", "scales", "sizes"});
  model.floats("roi", {0}, {});
  model.floats("scales", {0}, {});
  model.ints("sizes", {1, 1, 8});
  const Graph graph = must_read(model);
  const Node& node = graph.node(only(graph));
  EXPECT_FALSE(node.inputs[1].is_valid());
  EXPECT_FALSE(node.inputs[2].is_valid());
  EXPECT_EQ(graph.value(node.inputs[3]).name, "sizes");
  expect_error(write_model_bytes(graph, {10, ""}), ErrorCode::input, {"node (Resize)", "opset 11", "opset 10"});
}

TEST(OpForms, GemmGetsAZeroAddendBeforeOpset11) {
  OneNode model(11, "Gemm", {"x", "W"}, {1, 2});
  model.floats("W", {2, 1}, {1, 2});
  const auto written = must_write(must_read(model), 9);
  ASSERT_EQ(written.graph().node(0).input_size(), 3);
  EXPECT_EQ(written.graph().initializer(1).raw_data(), std::string(4, '\0'));
}

TEST(OpForms, LaterAttributesGoWhenTheySayNothingNew) {
  OneNode plain(14, "Reshape", {"x", "shape"});
  plain.ints("shape", {4});
  set_int(plain.self(), "allowzero", 0);
  EXPECT_EQ(written_node(must_read(plain), 9).attribute_size(), 0);

  OneNode zero(14, "Reshape", {"x", "shape"});
  zero.ints("shape", {4});
  set_int(zero.self(), "allowzero", 1);
  expect_error(write_model_bytes(must_read(zero), {13, ""}), ErrorCode::input,
               {"node (Reshape)", "\"allowzero\"", "opset 14", "opset 13"});
}

TEST(OpForms, LaterOperatorsNameBothOpsets) {
  expect_error(write_model_bytes(must_read(OneNode(20, "Gelu")), {19, ""}), ErrorCode::input,
               {"node (Gelu)", "opset 20", "opset 19"});
  expect_error(write_model_bytes(must_read(OneNode(14, "HardSwish")), {13, ""}), ErrorCode::input,
               {"node (HardSwish)", "opset 14", "opset 13"});
}

// FAULTS B015: a scale per channel needs opset 13, 4 bits need 21.
TEST(OpForms, QuantizationNeedsTheOpsetsOfItsForm) {
  const auto dequantize = [](int type, bool per_channel) {
    ModelMaker model(24, 12);
    model.output("y", {2, 2});
    model.codes("q", {2, 2}, type, type == 22 ? std::vector<int>{0x21, 0x43} : std::vector<int>{1, 2, 3, 4});
    model.floats("s", per_channel ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{},
                 per_channel ? std::vector<float>{1, 2} : std::vector<float>{1});
    auto& node = model.node("DequantizeLinear", {"q", "s"}, {"y"}, "dq");
    if (per_channel) set_int(node, "axis", 0);
    return must_read(model);
  };
  EXPECT_EQ(written_node(dequantize(3, false), 10).op_type(), "DequantizeLinear");
  EXPECT_EQ(written_node(dequantize(3, true), 13).attribute(0).name(), "axis");
  EXPECT_EQ(written_node(dequantize(22, true), 21).attribute(0).name(), "axis");
  expect_error(write_model_bytes(dequantize(3, true), {12, ""}), ErrorCode::input, {"dq", "opset 13", "opset 12"});
  expect_error(write_model_bytes(dequantize(22, true), {20, ""}), ErrorCode::input,
               {"dq", "i4", "opset 21", "opset 20"});
  expect_error(write_model_bytes(dequantize(3, false), {9, ""}), ErrorCode::input, {"dq", "opset 10", "opset 9"});
}

// FAULTS B002: invented names avoid names inside subgraphs too.
TEST(OpForms, InventedNamesClashWithNothing) {
  OneNode model(11, "Squeeze");
  set_ints(model.self(), "axes", {0});
  model.floats("node_axes", {1}, {1});
  model.input("cond", {}, 9);
  model.output("z", {1, 1, 4});
  auto& branch = model.node("If", {"cond"}, {"z"}, "branch");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& graph = *attribute(branch, name, Proto::GRAPH).mutable_g();
    auto& inner = *graph.add_node();
    inner.set_op_type("Relu");
    inner.add_input("x");
    inner.add_output("node_axes_2");
    ModelMaker::declare(*graph.add_output(), "node_axes_2", {1, 1, 4});
  }
  const Graph graph = must_read(model);
  const NodeId squeeze = nodes_of(graph, "Squeeze")[0];
  const std::string invented = graph.value(graph.node(squeeze).inputs[1]).name;
  EXPECT_NE(invented, "node_axes");
  EXPECT_NE(invented, "node_axes_2");
}

}  // namespace
}  // namespace ctk::graph::onnx::test
