#include "graph/shapes.h"

#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

using graph::ValueId;

// x [N,2,3] -> Shape -> Gather 0 -> Unsqueeze; Concat with -1 -> Reshape: the usual way to flatten per sample.
GraphBuilder flatten_by_arithmetic() {
  GraphBuilder b;
  const ValueId x = b.input("x", {-1, 2, 3});
  const ValueId shape = b.node("Shape", {x}, "shape", {}, "", DType::i64);
  const ValueId zero = b.constant("zero", Tensor::scalar(std::int64_t{0}));
  const ValueId batch = b.node("Gather", {shape, zero}, "batch", {}, "", DType::i64);
  const ValueId batches = b.node("Unsqueeze", {batch, b.constant("axes", ints({0}))}, "batches", {}, "", DType::i64);
  const ValueId wish =
      b.node("Concat", {batches, b.constant("rest", ints({-1}))}, "wish", {{"axis", std::int64_t{0}}}, "", DType::i64);
  b.output(b.node("Reshape", {x, wish}, "y"));
  return b;
}

TEST(InferShapes, FollowsShapeArithmetic) {
  const GraphBuilder b = flatten_by_arithmetic();
  const Shape inputs[] = {{5, 2, 3}};
  const auto inferred = graph::infer_shapes(b.graph, inputs);
  ASSERT_TRUE(inferred) << inferred.error().message;
  const auto& y = (*inferred)[b.graph.find_value("y")->index];
  EXPECT_TRUE(y.known);
  EXPECT_EQ(y.info.shape, (Shape{5, 6}));
  EXPECT_EQ(to_i64(*(*inferred)[b.graph.find_value("wish")->index].info.constant).value(), (Ints{5, -1}));
}

TEST(InferShapes, PutsTheAddressOfTheNodeInFrontOfItsError) {
  GraphBuilder b;
  const ValueId x = b.input("x", {2, 3});
  b.output(b.node("Reshape", {x, b.constant("s", ints({4}))}, "y"));
  const Shape inputs[] = {{2, 3}};
  const auto inferred = graph::infer_shapes(b.graph, inputs);
  ASSERT_FALSE(inferred);
  EXPECT_EQ(inferred.error().code, ErrorCode::input);
  EXPECT_EQ(inferred.error().message.find("Reshape_y (Reshape): "), 0u) << inferred.error().message;
}

TEST(InferShapes, RefusesShapesThatContradictTheDeclaredOnes) {
  const GraphBuilder b = flatten_by_arithmetic();
  const Shape wrong[] = {{5, 2, 4}}, flat[] = {{5, 6}}, negative[] = {{-1, 2, 3}};
  const auto status = graph::check_input_shapes(b.graph, wrong);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("\"x\": expected shape [N,2,3], found [5,2,4]"), std::string::npos)
      << status.error().message;
  EXPECT_FALSE(graph::check_input_shapes(b.graph, flat));
  EXPECT_FALSE(graph::check_input_shapes(b.graph, negative));
  EXPECT_FALSE(graph::check_input_shapes(b.graph, {}));
}

TEST(DefaultInputShapes, BindBatchInFrontAndOneElsewhere) {
  GraphBuilder b;
  b.input("x", {-1, 3});
  graph::Graph& g = b.graph;
  g.add_input(g.add_value("y", DType::f32, graph::DeclaredShape{{-1, ""}, {-1, "T"}, {-1, "N"}}));
  g.add_input(g.add_value("z", DType::f32, graph::DeclaredShape{}));
  const auto shapes = graph::default_input_shapes(g, 4);
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0], (Shape{4, 3}));
  EXPECT_EQ(shapes[1], (Shape{4, 1, 4}));  // "N" is the batch of x
  EXPECT_EQ(shapes[2], (Shape{}));
}

// x -> Relu -> my.ops::Foo -> Relu
GraphBuilder with_custom_operator() {
  GraphBuilder b;
  b.graph.other_opsets["my.ops"] = 7;
  const ValueId before = b.node("Relu", {b.input("x", {2})}, "before");
  const ValueId foo = b.node("Foo", {before}, "foo", {}, "my.ops");
  b.output(b.node("Relu", {foo}, "after"));
  return b;
}

TEST(InferShapes, NamesNodeDomainAndVersionOfAnUnknownOperator) {
  const GraphBuilder b = with_custom_operator();
  const Shape inputs[] = {{2}};
  const auto inferred = graph::infer_shapes(b.graph, inputs);
  ASSERT_FALSE(inferred);
  for (const char* word : {"Foo_foo", "\"Foo\"", "\"my.ops\"", "version 7"}) {
    EXPECT_NE(inferred.error().message.find(word), std::string::npos) << word;
  }
}

TEST(InferShapes, LosesOnlyWhatIsBehindAnUnknownOperator) {
  GraphBuilder b = with_custom_operator();
  const Shape inputs[] = {{2}};
  const auto inferred = graph::infer_shapes(b.graph, inputs, true);
  ASSERT_TRUE(inferred);
  EXPECT_TRUE((*inferred)[b.graph.find_value("before")->index].known);
  EXPECT_FALSE((*inferred)[b.graph.find_value("foo")->index].known);
  EXPECT_FALSE((*inferred)[b.graph.find_value("after")->index].known);
}

TEST(InferShapes, TrustsACompleteDeclarationBehindAnUnknownOperator) {
  GraphBuilder b = with_custom_operator();
  b.graph.value(*b.graph.find_value("foo")).shape = GraphBuilder::declared({3});
  const Shape inputs[] = {{2}};
  const auto inferred = graph::infer_shapes(b.graph, inputs, true);
  ASSERT_TRUE(inferred);
  EXPECT_EQ((*inferred)[b.graph.find_value("after")->index].info.shape, (Shape{3}));
}

TEST(InferShapes, ReadsCodesAsTheFloatWeightTheyStandFor) {
  GraphBuilder b;
  const ValueId x = b.input("x", {2, 3});
  const ValueId w = b.graph.add_value("w", DType::f32);
  QuantTensor codes;
  codes.codes = Tensor::zeros(DType::i8, {3, 4}).value();
  b.graph.value(w).quantized = std::make_shared<const QuantTensor>(std::move(codes));
  b.output(b.node("MatMul", {x, w}, "y"));
  const Shape inputs[] = {{2, 3}};
  const auto inferred = graph::infer_shapes(b.graph, inputs);
  ASSERT_TRUE(inferred) << inferred.error().message;
  EXPECT_EQ((*inferred)[w.index].info.dtype, DType::f32);
  EXPECT_EQ((*inferred)[b.graph.find_value("y")->index].info.shape, (Shape{2, 4}));
}

}  // namespace
}  // namespace ctk::test
