#include "graph/onnx/read.h"

#include <filesystem>
#include <fstream>

#include "core/random.h"
#include "tests/graph/onnx/model_maker.h"

namespace ctk::graph::onnx::test {
namespace {

// x[1,3] -> Gemm with W[3,2] -> y[1,2]
ModelMaker gemm_model(int ir_version = 8) {
  ModelMaker model(17, ir_version);
  model.input("x", {1, 3});
  model.output("y", {1, 2});
  model.floats("W", {3, 2}, {1, 2, 3, 4, 5, 6});
  model.node("Gemm", {"x", "W"}, {"y"}, "layer");
  return model;
}

TEST(OnnxRead, KeepsNamesTypesShapesAndMetadata) {
  ModelMaker model = gemm_model();
  auto& dim = *model.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  dim.mutable_dim(0)->set_dim_param("N");
  auto& entry = *model.proto.add_metadata_props();
  entry.set_key("author");
  entry.set_value("me");
  const Graph graph = must_read(model);
  ASSERT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.value(graph.inputs()[0]).name, "x");
  EXPECT_EQ(to_string(*graph.value(graph.inputs()[0]).shape), "[N,3]");
  EXPECT_EQ(graph.value(graph.outputs()[0]).name, "y");
  EXPECT_EQ(graph.opset, 17);
  EXPECT_EQ(graph.ir_version, 8);
  EXPECT_EQ(graph.name, "g");
  ASSERT_EQ(graph.metadata.size(), 1u);
  EXPECT_EQ(graph.metadata[0].second, "me");
  const auto W = graph.find_value("W");
  ASSERT_TRUE(W.has_value());
  const auto values = graph.value(*W).constant->values<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(graph.reader_notes.empty());
}

TEST(OnnxRead, SortsNodesThatStandInTheWrongOrder) {
  ModelMaker model;
  model.input("x", {1});
  model.output("y", {1});
  model.node("Relu", {"h"}, {"y"}, "second");
  model.node("Neg", {"x"}, {"h"}, "first");
  const Graph graph = must_read(model);
  ASSERT_EQ(graph.order().size(), 2u);
  EXPECT_EQ(graph.node(graph.order()[0]).name, "first");
}

// FAULTS B007: weights however they arrive.
TEST(OnnxRead, TakesConstantNodesAsConstantValues) {
  ModelMaker model;
  model.input("x", {1, 1});
  model.output("y", {1, 1});
  auto& node = model.node("Constant", {}, {"W"}, "c");
  auto& tensor = *attribute(node, "value", Proto::TENSOR).mutable_t();
  tensor.set_data_type(1);
  tensor.add_dims(1);
  tensor.add_dims(1);
  tensor.add_float_data(2.5f);
  model.node("MatMul", {"x", "W"}, {"y"}, "m");
  const Graph graph = must_read(model);
  ASSERT_EQ(graph.order().size(), 1u);
  const Value& W = graph.value(*graph.find_value("W"));
  ASSERT_TRUE(W.is_constant());
  EXPECT_EQ(W.constant->values<float>()[0], 2.5f);
}

TEST(OnnxRead, TakesEveryFormOfConstantNode) {
  ModelMaker model;
  model.input("x", {2});
  for (const char* name : {"y0", "y1", "y2", "y3"}) model.output(name, {2});
  set_float(model.node("Constant", {}, {"a"}), "value_float", 1.5f);
  set_int(model.node("Constant", {}, {"b"}), "value_int", 7);
  set_ints(model.node("Constant", {}, {"c"}), "value_ints", {3, 4});
  auto& floats = attribute(model.node("Constant", {}, {"d"}), "value_floats", Proto::FLOATS);
  floats.add_floats(0.5f);
  model.node("Add", {"x", "a"}, {"y0"});
  model.node("Add", {"x", "b"}, {"y1"});
  model.node("Add", {"x", "c"}, {"y2"});
  model.node("Add", {"x", "d"}, {"y3"});
  const Graph graph = must_read(model);
  EXPECT_EQ(graph.value(*graph.find_value("a")).constant->values<float>()[0], 1.5f);
  EXPECT_TRUE(graph.value(*graph.find_value("a")).constant->shape().empty());
  EXPECT_EQ(graph.value(*graph.find_value("b")).constant->values<std::int64_t>()[0], 7);
  EXPECT_EQ(graph.value(*graph.find_value("c")).constant->shape(), Shape{2});
  EXPECT_EQ(graph.value(*graph.find_value("d")).constant->shape(), Shape{1});
}

TEST(OnnxRead, KeepsWeightsBehindIdentityAndCastForThePasses) {
  ModelMaker model;
  model.input("x", {1, 2});
  model.output("y", {1, 1});
  model.codes("half", {2, 1}, 10, {0x3c00, 0xc000});  // fp16 1.0 and -2.0
  set_int(model.node("Cast", {"half"}, {"real"}, "cast"), "to", 1);
  model.node("Identity", {"real"}, {"W"}, "id");
  model.node("MatMul", {"x", "W"}, {"y"}, "m");
  const Graph graph = must_read(model);
  EXPECT_EQ(graph.order().size(), 3u);
  const Tensor& half = *graph.value(*graph.find_value("half")).constant;
  EXPECT_EQ(half.dtype(), DType::f16);
  EXPECT_EQ(to_f32(half)->values<float>()[1], -2.0f);
}

// FAULTS B008: initializers that are inputs too.
TEST(OnnxRead, DropsInitializersFromTheInputsSilentlyBeforeIr4) {
  ModelMaker model = gemm_model(3);
  model.input("W", {3, 2});
  const Graph graph = must_read(model);
  ASSERT_EQ(graph.inputs().size(), 1u);
  EXPECT_TRUE(graph.reader_notes.empty());
}

TEST(OnnxRead, FreezesDefaultInputsOfIr8AndSaysWhich) {
  ModelMaker model = gemm_model(8);
  model.input("W", {3, 2});
  const Graph graph = must_read(model);
  ASSERT_EQ(graph.inputs().size(), 1u);
  EXPECT_TRUE(graph.value(*graph.find_value("W")).is_constant());
  ASSERT_EQ(graph.reader_notes.size(), 1u);
  EXPECT_NE(graph.reader_notes[0].find("\"W\""), std::string::npos);
}

// FAULTS B014: custom domains.
ModelMaker custom_model() {
  ModelMaker model;
  model.import("my.ops", 3);
  model.input("x", {2, 2});
  model.output("y", {2, 2});
  auto& node = model.node("Foo", {"x", ""}, {"h", "", "unused"}, "foo");
  node.set_domain("my.ops");
  set_int(node, "k", 5);
  model.node("Relu", {"h"}, {"y"}, "r");
  return model;
}

TEST(OnnxRead, CarriesNodesOfOtherDomains) {
  const Graph graph = must_read(custom_model());
  EXPECT_EQ(graph.other_opsets.at("my.ops"), 3);
  const Node& foo = graph.node(graph.order()[0]);
  EXPECT_EQ(foo.op, Op::unknown);
  EXPECT_EQ(foo.domain, "my.ops");
  EXPECT_EQ(foo.attributes.get_int("k", 0), 5);
  ASSERT_EQ(foo.outputs.size(), 3u);
  EXPECT_FALSE(foo.outputs[1].is_valid());
}

TEST(OnnxRead, RefusesNodesOfOtherDomainsWhenTold) {
  expect_error(read(custom_model(), {.allow_custom_ops = false}), ErrorCode::input,
               {"foo (Foo)", "my.ops", "version 3"});
}

TEST(OnnxRead, RefusesADomainWithoutImport) {
  ModelMaker model = gemm_model();
  model.proto.mutable_graph()->mutable_node(0)->set_domain("my.ops");
  expect_error(read(model), ErrorCode::input, {"layer (Gemm)", "my.ops", "opset_import"});
}

TEST(OnnxRead, TakesTheLongNameOfTheDefaultDomain) {
  ModelMaker model = gemm_model();
  model.proto.mutable_graph()->mutable_node(0)->set_domain("ai.onnx");
  model.proto.mutable_opset_import(0)->set_domain("ai.onnx");
  const Graph graph = must_read(model);
  EXPECT_EQ(graph.node(graph.order()[0]).op, Op::Gemm);
  EXPECT_EQ(graph.opset, 17);
}

// FAULTS B002 on reading: empty and repeated node names stay separately addressable.
TEST(OnnxRead, AddressesUnnamedAndEquallyNamedNodesByOutput) {
  ModelMaker model;
  model.input("x", {1});
  model.output("c", {1});
  model.node("Relu", {"x"}, {"a"}, "");
  model.node("Relu", {"a"}, {"b"}, "n");
  model.node("Relu", {"b"}, {"c"}, "n");
  const Graph graph = must_read(model);
  std::vector<std::string> addresses;
  for (NodeId id : graph.order()) addresses.push_back(graph.address(id));
  EXPECT_EQ(addresses, (std::vector<std::string>{"a", "b", "c"}));
}

// x -> If(cond, then: Add(x, W), else: Identity(x)) ; the subgraphs read x and W from outside.
ModelMaker if_model() {
  ModelMaker model;
  model.input("cond", {}, 9);
  model.input("x", {2});
  model.output("y", {2});
  model.floats("W", {2}, {1, 2});
  auto& node = model.node("If", {"cond"}, {"y"}, "branch");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& graph = *attribute(node, name, Proto::GRAPH).mutable_g();
    graph.set_name(name);
    auto& inner = *graph.add_node();
    inner.set_op_type(std::string(name) == "then_branch" ? "Add" : "Identity");
    inner.add_input("x");
    if (inner.op_type() == "Add") inner.add_input("W");
    inner.add_output(std::string(name) + "_out");
    ModelMaker::declare(*graph.add_output(), std::string(name) + "_out", {2});
  }
  return model;
}

TEST(OnnxRead, CarriesSubgraphsAndCountsWhatTheyReadAsConsumed) {
  const Graph graph = must_read(if_model());
  const Node& node = graph.node(graph.order()[0]);
  EXPECT_EQ(node.op, Op::unknown);
  EXPECT_TRUE(std::holds_alternative<OpaqueAttribute>(*node.attributes.find("then_branch")));
  std::vector<std::string> captured;
  for (ValueId id : node.captured) captured.push_back(graph.value(id).name);
  EXPECT_EQ(captured, (std::vector<std::string>{"x", "W"}));
  EXPECT_EQ(graph.value(*graph.find_value("W")).consumers.size(), 1u);
}

TEST(OnnxRead, RefusesASubgraphThatReadsAnUndefinedName) {
  ModelMaker model = if_model();
  model.proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(0,
                                                                                                              "ghost");
  expect_error(read(model), ErrorCode::input, {"branch (If)", "subgraph", "\"ghost\""});
}

TEST(OnnxRead, CarriesStringTensors) {
  ModelMaker model = gemm_model();
  model.tensor("labels", {2}, 8).add_string_data("cat");
  model.proto.mutable_graph()->mutable_initializer(1)->add_string_data("dog");
  const Graph graph = must_read(model);
  EXPECT_EQ(graph.value(*graph.find_value("labels")).dtype, DType::string);
  const auto written = must_write(graph);
  ASSERT_EQ(written.graph().node_size(), 2);
  EXPECT_EQ(written.graph().node(0).attribute(0).t().string_data(1), "dog");
}

// ---- FAULTS B097 and the bad inputs of the issue

TEST(OnnxReadBadInput, NamesNodesOfACycle) {
  ModelMaker model;
  model.input("x", {1});
  model.output("a", {1});
  model.node("Add", {"x", "b"}, {"a"}, "one");
  model.node("Relu", {"a"}, {"b"}, "two");
  expect_error(read(model), ErrorCode::input, {"cycle", "one"});
}

TEST(OnnxReadBadInput, RefusesStructureFaultsByName) {
  ModelMaker twice = gemm_model();
  twice.node("Relu", {"x"}, {"y"}, "again");
  expect_error(read(twice), ErrorCode::input, {"again (Relu)", "\"y\"", "twice"});

  ModelMaker undefined = gemm_model();
  undefined.proto.mutable_graph()->mutable_node(0)->set_input(0, "ghost");
  expect_error(read(undefined), ErrorCode::input, {"layer (Gemm)", "\"ghost\""});

  ModelMaker no_output = gemm_model();
  no_output.output("z", {1});
  expect_error(read(no_output), ErrorCode::input, {"\"z\"", "produced by no node"});

  ModelMaker unnamed = gemm_model();
  unnamed.input("", {1});
  expect_error(read(unnamed), ErrorCode::input, {"graph input", "without a name"});

  ModelMaker overwritten = gemm_model();
  overwritten.node("Relu", {"x"}, {"W"}, "clash");
  expect_error(read(overwritten), ErrorCode::input, {"clash", "\"W\""});

  ModelMaker same_twice = gemm_model();
  same_twice.floats("W", {1}, {1});
  expect_error(read(same_twice), ErrorCode::input, {"\"W\"", "twice"});
}

TEST(OnnxReadBadInput, RefusesWhatItCannotRead) {
  ModelMaker functions = gemm_model();
  functions.proto.add_functions()->set_name("f");
  expect_error(read(functions), ErrorCode::input, {"functions", "\"f\"", "Inline"});

  ModelMaker sparse = gemm_model();
  sparse.proto.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("S");
  expect_error(read(sparse), ErrorCode::input, {"\"S\"", "sparse"});

  expect_error(read(ModelMaker(8)), ErrorCode::input, {"9 to 24", "8"});
  expect_error(read(ModelMaker(25)), ErrorCode::input, {"9 to 24", "25"});
  expect_error(read(ModelMaker(17, 2)), ErrorCode::input, {"IR version", "2"});

  ModelMaker sequence = gemm_model();
  sequence.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type();
  expect_error(read(sequence), ErrorCode::input, {"\"x\"", "tensor type"});
}

TEST(OnnxReadBadInput, RefusesAttributesOfTheWrongTypeOrOpset) {
  ModelMaker wrong = gemm_model();
  set_float(*wrong.proto.mutable_graph()->mutable_node(0), "transB", 1.0f);
  expect_error(read(wrong), ErrorCode::input, {"layer (Gemm)", "\"transB\"", "an integer", "a float"});

  ModelMaker misspelt = gemm_model();
  set_int(*misspelt.proto.mutable_graph()->mutable_node(0), "transb", 1);
  expect_error(read(misspelt), ErrorCode::input, {"layer (Gemm)", "\"transb\"", "opset 17"});

  ModelMaker twice = gemm_model();
  set_int(*twice.proto.mutable_graph()->mutable_node(0), "transB", 1);
  set_int(*twice.proto.mutable_graph()->mutable_node(0), "transB", 0);
  expect_error(read(twice), ErrorCode::input, {"layer (Gemm)", "\"transB\"", "twice"});

  ModelMaker early(17);
  early.input("x", {1});
  early.output("y", {1});
  early.node("Gelu", {"x"}, {"y"}, "act");
  expect_error(read(early), ErrorCode::input, {"act (Gelu)", "opset 20", "opset 17"});
}

TEST(OnnxReadBadInput, RefusesMissingEmptyRandomAndCutFiles) {
  const std::string folder = ::testing::TempDir() + "/onnx_bad";
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
    return folder + "/" + name;
  };
  expect_error(read_model(folder + "/none.onnx"), ErrorCode::input, {"none.onnx"});
  expect_error(read_model(write("empty.onnx", "")), ErrorCode::input, {"empty.onnx", "empty file"});

  const std::string whole = gemm_model().bytes();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto graph = read_text_bytes(whole.substr(0, size));
    ASSERT_FALSE(graph.has_value()) << "cut to " << size << " bytes";
    EXPECT_EQ(graph.error().code, ErrorCode::input);
  }
  expect_error(read_model(write("cut.onnx", whole.substr(0, whole.size() / 2))), ErrorCode::input,
               {"cut.onnx", "cut off", "bytes"});

  Random random(42);
  for (int round = 0; round < 200; ++round) {
    std::string noise(1 + random.below(4000), '\0');
    for (char& byte : noise) byte = static_cast<char>(random.below(256));
    const auto graph = read_text_bytes(noise);
    ASSERT_FALSE(graph.has_value()) << "round " << round;
    EXPECT_EQ(graph.error().code, ErrorCode::input);
  }
}

TEST(OnnxReadBadInput, SurvivesDamagedBytes) {
  const std::string whole = if_model().bytes();
  Random random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = whole;
    for (int change = 0; change < 3; ++change) {
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    }
    const auto graph = read_text_bytes(damaged);  // any answer will do, as long as there is one
    EXPECT_TRUE(!graph || verify(*graph).has_value());
  }
}

std::string field(int number, const std::string& content) {
  std::string out(1, static_cast<char>(number * 8 + 2));
  for (std::size_t length = content.size();; length >>= 7) {
    if (length < 128) {
      out += static_cast<char>(length);
      break;
    }
    out += static_cast<char>((length & 127) | 128);
  }
  return out + content;
}

TEST(OnnxReadBadInput, RefusesTenThousandNestedIfs) {
  std::string graph = field(2, "innermost");
  for (int depth = 0; depth < 10000; ++depth) {
    const std::string attribute =
        field(1, "then_branch") + field(6, graph) + std::string("\xa0\x01\x05", 3);  // type: GRAPH
    graph = field(1, field(4, "If") + field(5, attribute));
  }
  const std::string model = std::string("\x08\x08", 2) + field(7, graph);  // ir_version 8
  expect_error(read_text_bytes(model), ErrorCode::input, {"nested deeper than 100"});
}

}  // namespace
}  // namespace ctk::graph::onnx::test
