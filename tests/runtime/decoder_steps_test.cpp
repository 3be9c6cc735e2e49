// What a decoder does beside its products, planned with and without fusion, gives the bits of the float evaluation.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/gelu.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/sigmoid.h"
#include "runtime/cpu_executor.h"
#include "tests/support/interpret.h"

namespace ctk::runtime {
namespace {

using graph::DeclaredShape;
using graph::Graph;
using graph::Node;
using graph::ValueId;

struct Network {
  Graph graph;
  std::vector<Tensor> inputs;

  ValueId input(const std::string& name, Tensor tensor) {
    DeclaredShape declared;
    for (std::int64_t size : tensor.shape()) declared.push_back({size, ""});
    const ValueId id = graph.add_value(name, tensor.dtype(), declared);
    graph.add_input(id);
    inputs.push_back(std::move(tensor));
    return id;
  }
  ValueId random(const std::string& name, const Shape& shape) {
    Random random(5, name);
    Tensor tensor = Tensor::zeros(DType::f32, shape).value();
    for (float& x : tensor.mutable_values<float>()) x = static_cast<float>(3 * random.normal());
    return input(name, std::move(tensor));
  }
  ValueId node(const std::string& op, std::vector<ValueId> from,
               const std::vector<std::pair<std::string, graph::Attribute>>& attributes = {}) {
    Node made;
    made.op_type = op;
    made.inputs = std::move(from);
    for (const auto& [key, value] : attributes) made.attributes.set(key, value);
    made.outputs = {graph.add_value(graph.unique_name(op), DType::f32)};
    const ValueId y = made.outputs[0];
    graph.add_node(std::move(made));
    return y;
  }

  // Labels of the steps; outputs are compared bit for bit.
  std::vector<std::string> labels(bool fuse) {
    std::vector<std::string> found;
    const auto want = test::interpret(graph, inputs);
    EXPECT_TRUE(want.has_value());
    for (int threads : {1, 2}) {
      set_threads(threads);
      std::vector<Shape> shapes;
      for (const Tensor& tensor : inputs) shapes.push_back(tensor.shape());
      ExecutorOptions options;
      options.fuse = fuse;
      auto executor = CpuExecutor::create(graph, shapes, options);
      EXPECT_TRUE(executor.has_value());
      const auto got = (*executor)->run(inputs);
      EXPECT_TRUE(got.has_value());
      for (std::size_t i = 0; i < got->size(); ++i) {
        const Tensor &a = (*got)[i], &b = want->outputs[i];
        EXPECT_TRUE(a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0) << threads << " threads";
      }
      found.clear();
      for (const auto& step : (*executor)->plan().steps) found.push_back(step->label);
    }
    set_threads(1);
    return found;
  }
};

using Labels = std::vector<std::string>;

TEST(DecoderSteps, SwiGluIsOneStepOfTheSameBits) {
  for (bool is_swapped : {false, true}) {
    Network net;
    const ValueId x = net.random("x", {37, 61}), up = net.random("up", {37, 61});
    const ValueId s = net.node("Sigmoid", {x});
    const ValueId inner = is_swapped ? net.node("Mul", {s, x}) : net.node("Mul", {x, s});
    net.graph.add_output(is_swapped ? net.node("Mul", {up, inner}) : net.node("Mul", {inner, up}));
    EXPECT_EQ(net.labels(true), Labels{"gated_f32"});
    EXPECT_EQ(net.labels(false), (Labels{"reference_Sigmoid", "mul_f32", "mul_f32"}));
  }
}

TEST(DecoderSteps, AGateThatSomebodyElseReadsStaysThreeSteps) {
  Network net;
  const ValueId x = net.random("x", {5, 7}), up = net.random("up", {5, 7});
  const ValueId inner = net.node("Mul", {x, net.node("Sigmoid", {x})});
  net.graph.add_output(net.node("Mul", {inner, up}));
  net.graph.add_output(inner);
  EXPECT_EQ(net.labels(true), (Labels{"reference_Sigmoid", "mul_f32", "mul_f32"}));
}

TEST(DecoderSteps, NormalizationIsSplitByRows) {
  for (const Shape& shape : {Shape{33, 576}, Shape{3, 5, 13}, Shape{1}}) {
    Network net;
    const ValueId x = net.random("x", shape), scale = net.random("scale", {shape.back()});
    net.graph.add_output(net.node("RMSNormalization", {x, scale}, {{"epsilon", 1e-6f}}));
    EXPECT_EQ(net.labels(true), Labels{"rms_normalization"});
  }
  Network other;  // two dimensions at once: by the float evaluation
  const ValueId x = other.random("x", {3, 5, 13}), scale = other.random("scale", {5, 13});
  other.graph.add_output(other.node("RMSNormalization", {x, scale}, {{"axis", std::int64_t{1}}}));
  EXPECT_EQ(other.labels(true), Labels{"reference_RMSNormalization"});
}

TEST(DecoderSteps, LayerNormalizationIsSplitByRows) {
  for (const Shape& shape : {Shape{33, 384}, Shape{3, 5, 13}, Shape{1}}) {
    for (bool has_shift : {false, true}) {
      Network net;
      const ValueId x = net.random("x", shape), scale = net.random("scale", {shape.back()});
      std::vector<ValueId> from{x, scale};
      if (has_shift) from.push_back(net.random("shift", {shape.back()}));
      net.graph.add_output(net.node("LayerNormalization", from, {{"epsilon", 1e-12f}}));
      EXPECT_EQ(net.labels(true), Labels{"layer_normalization"});
    }
  }
  Network wide;  // a shift of another shape: by the float evaluation
  const ValueId x = wide.random("x", {3, 5}), scale = wide.random("scale", {5}), shift = wide.random("shift", {3, 1});
  wide.graph.add_output(wide.node("LayerNormalization", {x, scale, shift}));
  EXPECT_EQ(wide.labels(true), Labels{"reference_LayerNormalization"});
}

TEST(DecoderSteps, FunctionsOfSingleElementsAreSplit) {
  for (const Shape& shape : {Shape{3, 8192}, Shape{8193}, Shape{2, 3}, Shape{0, 4}}) {
    for (const char* op : {"Gelu", "Tanh", "Erf"}) {
      Network net;
      net.graph.add_output(net.node(op, {net.random("x", shape)}));
      EXPECT_EQ(net.labels(true), Labels{std::string("reference_") + op});
    }
  }
}

TEST(Gelu, AgreesWithDouble) {
  for (float x = -13.0f; x < 13.0f; x += 0.00137f) {
    const double v = static_cast<double>(x), want = 0.5 * v * std::erfc(-v / std::sqrt(2.0));
    EXPECT_LE(std::abs(gelu(x) - want), (x > -5 ? 1e-6 : 5e-6) * std::abs(want) + 1e-37) << x;
    const double u = std::sqrt(2.0 / 3.14159265358979323846) * (v + 0.044715 * v * v * v);
    const double by_tanh = v / (1.0 + std::exp(-2.0 * u));
    EXPECT_LE(std::abs(gelu_by_tanh(x) - by_tanh), (x > -3 ? 2e-6 : 2e-5) * std::abs(by_tanh) + 1e-36) << x;
  }
}

TEST(Gelu, HasItsLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kLargest = std::numeric_limits<float>::max();
  for (auto f : {gelu, gelu_by_tanh}) {
    EXPECT_EQ(f(0.0f), 0.0f);
    EXPECT_EQ(f(kInfinity), kInfinity);
    EXPECT_EQ(f(kLargest), kLargest);
    EXPECT_EQ(f(-kLargest), 0.0f);
    EXPECT_TRUE(std::isnan(f(std::numeric_limits<float>::quiet_NaN())));
  }
  EXPECT_EQ(gelu(-kInfinity), 0.0f);
}

TEST(DecoderSteps, RotaryEmbeddingIsSplitByTokens) {
  for (std::int64_t interleaved : {0, 1}) {
    Network net;
    const ValueId x = net.random("x", {2, 19, 4 * 10});
    const ValueId cosines = net.random("cos", {64, 3}), sines = net.random("sin", {64, 3});
    std::vector<std::int64_t> at(2 * 19);
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(63 - i);
    const ValueId positions = net.input("positions", Tensor::of<std::int64_t>({2, 19}, at));
    net.graph.add_output(net.node(
        "RotaryEmbedding", {x, cosines, sines, positions},
        {{"num_heads", std::int64_t{4}}, {"rotary_embedding_dim", std::int64_t{6}}, {"interleaved", interleaved}}));
    EXPECT_EQ(net.labels(true), Labels{"rotary"});
  }
}

TEST(Sigmoid, AgreesWithDoubleWithinThreeUnits) {
  for (float x = -86.9f; x < 90.0f; x += 0.0137f) {
    const double want = 1.0 / (1.0 + std::exp(-static_cast<double>(x)));
    EXPECT_LE(std::abs(sigmoid(x) - want), 3 * 1.2e-7 * want) << x;
  }
}

TEST(Sigmoid, HasItsLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sigmoid(0.0f), 0.5f);
  EXPECT_EQ(sigmoid(kInfinity), 1.0f);
  EXPECT_EQ(sigmoid(-kInfinity), 0.0f);
  EXPECT_EQ(sigmoid(-1000.0f), 0.0f);
  EXPECT_TRUE(std::isnan(sigmoid(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace ctk::runtime
