// Weights held in 16 bits: the same numbers, seen as f32 by all that asks for dtype, shape or values.
#include "graph/floats.h"

#include <gtest/gtest.h>

#include "graph/layer.h"
#include "graph/shapes.h"

namespace ctk::graph {
namespace {

Tensor bits(DType dtype, Shape shape, std::vector<std::uint16_t> words) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape)).value();
  std::copy(words.begin(), words.end(), static_cast<std::uint16_t*>(tensor.mutable_data()));
  return tensor;
}

// 1, -2, 0.15625 (5/32), the largest number; bf16 is the upper half of a float, fp16 has 5 bits of exponent and 10 of
// mantissa.
const Tensor kBrain = bits(DType::bf16, {2, 2}, {0x3f80, 0xc000, 0x3e20, 0x7f7f});
const Tensor kHalf = bits(DType::f16, {2, 2}, {0x3c00, 0xc000, 0x3100, 0x7bff});

ValueId add_narrow(Graph& graph, const std::string& name, const Tensor& tensor) {
  const ValueId id = graph.add_constant(name, tensor);
  graph.value(id).dtype = DType::f32;
  return id;
}

std::vector<float> numbers(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

TEST(Floats, AreTheNumbersOfTheSixteenBits) {
  Graph graph;
  const ValueId brain = add_narrow(graph, "brain", kBrain), half = add_narrow(graph, "half", kHalf);
  EXPECT_TRUE(is_narrow(graph.value(brain)));
  // 0x7f7f0000: (2 - 2^-7) * 2^127
  EXPECT_EQ(numbers(floats_of(graph.value(brain))), (std::vector<float>{1, -2, 0.15625f, 0x1.fep127f}));
  EXPECT_EQ(numbers(floats_of(graph.value(half))), (std::vector<float>{1, -2, 0.15625f, 65504}));
  float row[2];
  widen_row(kHalf, 1, row);
  EXPECT_EQ(row[0], 0.15625f);
  EXPECT_EQ(row[1], 65504.0f);
}

TEST(Floats, OfAnF32ConstantAreItsOwnBytes) {
  Graph graph;
  const float values[] = {1, 2};
  const ValueId id = graph.add_constant("w", Tensor::of<float>({2}, values));
  EXPECT_FALSE(is_narrow(graph.value(id)));
  EXPECT_EQ(floats_of(graph.value(id)).data(), graph.value(id).constant->data());
}

TEST(Floats, AreVisitedInPiecesUntilAskedToStop) {
  Graph graph;
  Tensor large = Tensor::zeros(DType::bf16, {3, 50000}).value();
  static_cast<std::uint16_t*>(large.mutable_data())[100000] = 0x4040;  // 3
  const ValueId id = add_narrow(graph, "w", large);
  std::size_t seen = 0, at = 0;
  visit_floats(graph.value(id), [&](std::span<const float> piece, std::size_t first) {
    EXPECT_EQ(first, seen);
    seen += piece.size();
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (piece[i] == 3.0f) at = first + i;
    }
    return true;
  });
  EXPECT_EQ(seen, 150000u);
  EXPECT_EQ(at, 100000u);
  int pieces = 0;
  visit_floats(graph.value(id), [&](std::span<const float>, std::size_t) { return ++pieces < 2; });
  EXPECT_EQ(pieces, 2);
}

TEST(Floats, ACopyIsHeldTheSameWayAndWideningLeavesNone) {
  Graph graph;
  const ValueId brain = add_narrow(graph, "brain", kBrain);
  const ValueId copy = add_copy(graph, "copy", brain);
  EXPECT_TRUE(is_narrow(graph.value(copy)));
  EXPECT_EQ(graph.value(copy).constant->data(), graph.value(brain).constant->data());
  widen_constants(graph);
  EXPECT_EQ(graph.value(brain).constant->dtype(), DType::f32);
  EXPECT_EQ(graph.value(copy).constant->dtype(), DType::f32);
}

TEST(Floats, OfALayerAreF32ToShapeRules) {
  Graph graph;
  const ValueId x = graph.add_value("x", DType::f32, DeclaredShape{{3, ""}, {2, ""}});
  graph.add_input(x);
  Node node;
  node.name = "layer";
  node.op_type = "MatMul";
  node.inputs = {x, add_narrow(graph, "w", kBrain)};
  node.outputs = {graph.add_value("y", DType::f32)};
  graph.add_output(node.outputs[0]);
  const NodeId id = graph.add_node(std::move(node));
  const auto layer = layer_of(graph, id);
  ASSERT_TRUE(layer.has_value());
  EXPECT_EQ(layer->channels, 2);
  const Shape shapes[] = {{3, 2}};
  const auto infos = infer_shapes(graph, shapes);
  ASSERT_TRUE(infos.has_value());
  EXPECT_EQ((*infos)[graph.outputs()[0].index].info.dtype, DType::f32);
  EXPECT_EQ((*infos)[graph.outputs()[0].index].info.shape, (Shape{3, 2}));
}

}  // namespace
}  // namespace ctk::graph
