#include "graph/onnx/write.h"

#include "graph/text.h"
#include "tests/graph/onnx/model_maker.h"

namespace ctk::graph::onnx::test {
namespace {

ModelMaker small_cnn(int opset = 17) {
  ModelMaker model(opset);
  model.input("x", {1, 1, 4, 4});
  model.output("y", {1, 2, 1, 1});
  model.floats("W", {2, 1, 3, 3}, std::vector<float>(18, 0.25f));
  model.floats("never read", {1}, {1});
  auto& conv = model.node("Conv", {"x", "W"}, {"h"}, "conv");
  set_ints(conv, "pads", {1, 1, 1, 1});
  set_text(conv, "auto_pad", "NOTSET");
  model.node("Relu", {"h"}, {"r"}, "");
  model.node("GlobalAveragePool", {"r"}, {"y"}, "pool");
  ModelMaker::declare(*model.proto.mutable_graph()->add_value_info(), "h", {1, 2, 4, 4});
  return model;
}

TEST(OnnxWrite, GivesBackWhatWasRead) {
  ModelMaker model = small_cnn();
  auto& entry = *model.proto.add_metadata_props();
  entry.set_key("k");
  entry.set_value("v");
  const Graph graph = must_read(model);
  const auto written = must_write(graph);
  EXPECT_EQ(written.producer_name(), "compress");
  EXPECT_EQ(written.ir_version(), 8);
  ASSERT_EQ(written.opset_import_size(), 1);
  EXPECT_EQ(written.opset_import(0).version(), 17);
  EXPECT_EQ(written.metadata_props(0).value(), "v");
  const auto& before = model.proto.graph();
  const auto& after = written.graph();
  ASSERT_EQ(after.node_size(), before.node_size());
  for (int i = 0; i < after.node_size(); ++i) {
    EXPECT_EQ(after.node(i).SerializeAsString(), before.node(i).SerializeAsString()) << i;
  }
  ASSERT_EQ(after.initializer_size(), 2);
  EXPECT_EQ(after.initializer(1).name(), "never read");
  EXPECT_EQ(after.input(0).SerializeAsString(), before.input(0).SerializeAsString());
  EXPECT_EQ(after.output(0).SerializeAsString(), before.output(0).SerializeAsString());
  ASSERT_EQ(after.value_info_size(), 1);
  EXPECT_EQ(after.value_info(0).SerializeAsString(), before.value_info(0).SerializeAsString());
}

TEST(OnnxWrite, IsAFixedPointAfterOneRoundTrip) {
  const Graph first = must_read(small_cnn());
  const auto bytes = write_model_bytes(first, {});
  ASSERT_TRUE(bytes.has_value());
  const auto second = read_text_bytes(*bytes);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(print_graph(first), print_graph(*second));
  EXPECT_EQ(*write_model_bytes(*second, {}), *bytes);
  EXPECT_EQ(*write_model_bytes(first, {}), *bytes);
}

TEST(OnnxWrite, RaisesTheIrVersionWithTheOpset) {
  const Graph graph = must_read(small_cnn());
  EXPECT_EQ(must_write(graph, 21).ir_version(), 10);
  EXPECT_EQ(must_write(graph, 24).ir_version(), 12);
  EXPECT_EQ(must_write(graph, 9).ir_version(), 8);
  EXPECT_EQ(must_write(graph, 21).opset_import(0).version(), 21);
}

TEST(OnnxWrite, RefusesOpsetsOutsideItsRange) {
  const Graph graph = must_read(small_cnn());
  expect_error(write_model_bytes(graph, {8, ""}), ErrorCode::config, {"9 to 24", "8"});
  expect_error(write_model_bytes(graph, {25, ""}), ErrorCode::config, {"9 to 24", "25"});
}

TEST(OnnxWrite, RefusesQuantizationNotes) {
  Graph graph = must_read(small_cnn());
  graph.value(*graph.find_value("h")).activation_quant = ActivationQuant{};
  expect_error(write_model_bytes(graph, {}), ErrorCode::internal, {"\"h\"", "quantization note"});
}

// FAULTS B014: a node nobody knows comes back unchanged, with its opset import, also into another opset.
TEST(OnnxWrite, GivesBackCustomNodesAndTheirImport) {
  ModelMaker model;
  model.import("my.ops", 3);
  model.input("x", {2, 2});
  model.output("y", {2, 2});
  auto& foo = model.node("Foo", {"x", "", "x"}, {"h", "", "unused"}, "foo");
  foo.set_domain("my.ops");
  set_int(foo, "i", 5);
  set_float(foo, "f", 0.5f);
  set_text(foo, "s", "word");
  set_ints(foo, "is", {1, -2});
  attribute(foo, "none", Proto::INTS);
  attribute(foo, "fs", Proto::FLOATS).add_floats(1.5f);
  attribute(foo, "ss", Proto::STRINGS).add_strings("a");
  auto& type = attribute(foo, "tp", Proto::TYPE_PROTO);
  type.mutable_tp()->mutable_tensor_type()->set_elem_type(1);
  auto& float8 = *attribute(foo, "f8", Proto::TENSOR).mutable_t();
  float8.set_data_type(17);
  float8.add_dims(1);
  float8.set_raw_data("x");
  model.node("Relu", {"h"}, {"y"}, "r");
  const Graph graph = must_read(model);
  for (const int opset : {0, 21}) {
    const auto written = must_write(graph, opset);
    ASSERT_EQ(written.opset_import_size(), 2);
    EXPECT_EQ(written.opset_import(1).domain(), "my.ops");
    EXPECT_EQ(written.opset_import(1).version(), 3);
    EXPECT_EQ(written.graph().node(0).SerializeAsString(), model.proto.graph().node(0).SerializeAsString());
  }
}

TEST(OnnxWrite, GivesBackSubgraphsAtTheSameOpsetOnly) {
  ModelMaker model;
  model.input("cond", {}, 9);
  model.input("x", {2});
  model.output("y", {2});
  auto& node = model.node("If", {"cond"}, {"y"}, "branch");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& graph = *attribute(node, name, Proto::GRAPH).mutable_g();
    graph.set_name(name);
    auto& inner = *graph.add_node();
    inner.set_op_type("Relu");
    inner.add_input("x");
    inner.add_output(std::string(name) + "_out");
    ModelMaker::declare(*graph.add_output(), std::string(name) + "_out", {2});
  }
  const Graph graph = must_read(model);
  EXPECT_EQ(must_write(graph).graph().node(0).SerializeAsString(), model.proto.graph().node(0).SerializeAsString());
  expect_error(write_model_bytes(graph, {21, ""}), ErrorCode::input, {"branch (If)", "opset 17", "opset 21"});
}

TEST(OnnxWrite, NamesUnknownOperatorsWhenTheOpsetChanges) {
  ModelMaker model;
  model.input("x", {2});
  model.output("y", {2});
  model.node("Softplus", {"x"}, {"y"}, "sp");
  const Graph graph = must_read(model);
  EXPECT_EQ(must_write(graph).graph().node(0).op_type(), "Softplus");
  expect_error(write_model_bytes(graph, {18, ""}), ErrorCode::input, {"sp (Softplus)", "opset 17", "opset 18"});
}

}  // namespace
}  // namespace ctk::graph::onnx::test
