// Resize as planned gives the bits of its float evaluation: modes, coordinates, dimensions, layouts, codes, threads.
#include <gtest/gtest.h>

#include <cstring>

#include "core/parallel.h"
#include "runtime/cpu_executor.h"
#include "tests/support/graph_builder.h"

namespace ctk::runtime {
namespace {

using graph::Graph;
using graph::ValueId;
using test::Attrs;
using test::Floats;
using test::GraphBuilder;
using test::Ints;

Graph resizing(const Shape& shape, const Floats& scales, const Attrs& attributes, DType dtype = DType::f32) {
  GraphBuilder b;
  const ValueId x = b.input("x", shape, dtype);
  const ValueId factors = b.constant("scales", test::floats({static_cast<std::int64_t>(scales.size())}, scales));
  b.output(b.node("Resize", {x, {}, factors}, "y", attributes, "", dtype));
  return std::move(b.graph);
}

// Runs with one and more threads, each time to the same bits. The labels of the steps.
std::vector<std::string> expect_bits(const Graph& graph, const Tensor& x, const Tensor& want) {
  std::vector<std::string> labels;
  for (int threads : {1, 3}) {
    set_threads(threads);
    auto executor = CpuExecutor::create(graph, {x.shape()}, {});
    EXPECT_TRUE(executor.has_value());
    const auto got = (*executor)->run(std::span(&x, 1));
    EXPECT_TRUE(got.has_value());
    EXPECT_TRUE((*got)[0].shape() == want.shape() && std::memcmp((*got)[0].data(), want.data(), want.bytes()) == 0)
        << threads << " threads";
    labels.clear();
    for (const auto& step : (*executor)->plan().steps) labels.push_back(step->label);
  }
  set_threads(1);
  return labels;
}

std::vector<std::string> expect_reference_bits(const Graph& graph, const Tensor& x) {
  const auto want = test::interpret(graph, {x});
  EXPECT_TRUE(want.has_value());
  return expect_bits(graph, x, want->outputs[0]);
}

using Labels = std::vector<std::string>;

TEST(ResizeStep, GivesTheBitsOfEveryModeAndCoordinate) {
  const Tensor x = test::varied({2, 11, 5, 7});
  const Floats sizes[] = {{1, 1, 2, 2}, {1, 1, 0.6f, 1.5f}, {1, 1, 3.3f, 0.5f}, {1, 1, 1, 2.2f}, {1, 1, 1, 1}};
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinate :
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
      for (const Floats& scales : sizes) {
        SCOPED_TRACE(std::string(mode) + " " + coordinate + " " + std::to_string(scales[3]));
        const Graph graph =
            resizing(x.shape(), scales,
                     {{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(coordinate)}});
        const bool moves = mode == std::string("nearest");
        EXPECT_EQ(expect_reference_bits(graph, x),
                  (Labels{"to_channels_last", moves ? "resize_nearest" : "resize_blend", "to_channels_first"}));
      }
    }
  }
}

TEST(ResizeStep, TakesOtherDimensionsAsTheyLie) {
  struct Row {
    Shape shape;
    Floats scales;
    Labels labels;
  };
  const Row rows[] = {
      {{9}, {1.7f}, {"resize_blend"}},
      {{4, 9}, {2, 0.7f}, {"resize_blend"}},
      {{3, 5, 8}, {1, 1, 1.5f}, {"to_channels_last", "resize_blend", "to_channels_first"}},
      {{3, 5, 8}, {1, 2, 1.5f}, {"resize_blend"}},
      {{2, 5, 6, 3}, {1, 2, 1.5f, 1}, {"resize_blend"}},  // channels last in the model itself
      {{5, 6, 3, 2}, {0.5f, 1, 1, 1}, {"resize_blend"}},
      {{2, 3, 4, 5, 6}, {1, 1, 1, 2, 2}, {"resize_blend"}},
      {{1, 2, 1, 1}, {1, 1, 3, 3}, {"resize_blend", "to_channels_first"}},  // of one pixel there is one layout
      {{2, 3, 4, 5, 6}, {1, 1, 2, 2, 2}, {"reference_Resize"}},             // three dimensions
      {{4, 5, 6}, {2, 1, 2}, {"reference_Resize"}},                         // not neighbours
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(::testing::PrintToString(row.shape));
    const Graph graph = resizing(row.shape, row.scales, {{"mode", std::string("linear")}});
    EXPECT_EQ(expect_reference_bits(graph, test::varied(row.shape)), row.labels);
  }
}

TEST(ResizeStep, MovesElementsOfAnyType) {
  std::vector<std::int64_t> numbers(2 * 3 * 4 * 5);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i) << 33;
  const Tensor x = Tensor::of<std::int64_t>({2, 3, 4, 5}, numbers);
  EXPECT_EQ(expect_reference_bits(resizing({2, 3, 4, 5}, {1, 1, 2, 0.5f}, {}, DType::i64), x),
            Labels{"resize_nearest"});
}

TEST(ResizeStep, AnEmptyImageStaysEmpty) {
  const Tensor x = Tensor::zeros(DType::f32, {0, 3, 4, 5}).value();
  EXPECT_EQ(expect_reference_bits(resizing({0, 3, 4, 5}, {1, 1, 2, 2}, {}), x), Labels{"reference_Resize"});
}

// What the notes say: x as codes, resized as floats, rounded to codes.
Tensor by_notes(Graph graph, const Tensor& x, const ActivationQuant& in, const ActivationQuant& out) {
  Tensor rounded = Tensor::zeros(DType::f32, x.shape()).value();
  for (std::size_t i = 0; i < x.size(); ++i)
    rounded.mutable_values<float>()[i] = dequantize(quantize(x.values<float>()[i], in), in);
  for (std::size_t i = 0; i < graph.value_capacity(); ++i)
    graph.value(ValueId{static_cast<std::uint32_t>(i)}).activation_quant.reset();
  Tensor y = test::interpret(graph, {rounded})->outputs[0];
  for (float& value : y.mutable_values<float>()) value = dequantize(quantize(value, out), out);
  return y;
}

TEST(ResizeStep, ComputesOnCodesWhereBothEndsHaveThem) {
  const Tensor x = test::varied({2, 13, 5, 7});
  const ActivationQuant in{0.009f, 120}, other{0.0061f, 131};
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const ActivationQuant& out : {in, other}) {
      SCOPED_TRACE(std::string(mode) + " " + std::to_string(out.scale));
      Graph graph = resizing(x.shape(), {1, 1, 1.6f, 0.8f}, {{"mode", std::string(mode)}});
      graph.value(*graph.find_value("x")).activation_quant = in;
      graph.value(*graph.find_value("y")).activation_quant = out;
      const bool moves = mode == std::string("nearest") && out == in;
      EXPECT_EQ(expect_bits(graph, x, by_notes(graph, x, in, out)),
                (Labels{"quantize", "to_channels_last", moves ? "resize_nearest" : "resize_blend", "dequantize",
                        "to_channels_first"}));
    }
  }
}

}  // namespace
}  // namespace ctk::runtime
