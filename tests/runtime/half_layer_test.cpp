// Weights of 16 bits stay 16 bits in a plan, and give what their floats give.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"
#include "graph/floats.h"
#include "runtime/cpu_executor.h"

namespace ctk::runtime {
namespace {

using graph::Graph;
using graph::ValueId;

enum class Held { float32, half, brain, scheme };  // scheme: as the quantizer's fp16

struct Layer {
  const char* op;
  Shape input, weight;
};
const Layer kLayers[] = {{"MatMul", {5, 72}, {72, 21}}, {"Conv", {2, 9, 7, 6}, {21, 9, 3, 3}}};

Tensor random_tensor(const Shape& shape, const char* stream) {
  Random random(7, stream);
  Tensor tensor = Tensor::zeros(DType::f32, shape).value();
  for (float& value : tensor.mutable_values<float>()) value = static_cast<float>(random.normal());
  return tensor;
}

ValueId add_value(Graph& graph, const char* name, const Shape& shape) {
  graph::DeclaredShape declared;
  for (std::int64_t size : shape) declared.push_back({size, ""});
  return graph.add_value(name, DType::f32, declared);
}

// One layer whose weight holds the numbers of `narrow`, in the bits asked for.
Graph network(const Layer& layer, const Tensor& narrow, Held held) {
  Graph graph;
  const ValueId x = add_value(graph, "x", layer.input), w = add_value(graph, "w", layer.weight);
  graph.add_input(x);
  graph.value(w).constant = narrow;
  if (held == Held::float32) graph.value(w).constant = graph::floats_of(graph.value(w));
  if (held == Held::scheme) {
    QuantTensor halves;
    halves.scheme = parse_scheme("fp16").value();
    halves.codes = narrow;
    graph.value(w).quantized = std::make_shared<const QuantTensor>(std::move(halves));
    graph.value(w).constant.reset();
  }
  graph::Node node;
  node.op_type = layer.op;
  node.inputs = {x, w};
  const ValueId y = graph.add_value("y", DType::f32);
  node.outputs = {y};
  graph.add_node(std::move(node));
  graph.add_output(y);
  return graph;
}

struct Ran {
  std::vector<std::string> labels;
  std::size_t packed_bytes;
  std::vector<float> output;
};

Ran run(const Graph& graph, const Tensor& x) {
  auto executor = CpuExecutor::create(graph, {x.shape()});
  EXPECT_TRUE(executor.has_value()) << executor.error().message;
  const auto got = (*executor)->run(std::span(&x, 1));
  EXPECT_TRUE(got.has_value());
  const auto output = (*got)[0].values<float>();
  Ran ran{{}, (*executor)->plan().packed_bytes, {output.begin(), output.end()}};
  for (const auto& step : (*executor)->plan().steps) ran.labels.push_back(step->label);
  return ran;
}

TEST(HalfLayer, KeepsItsWeightInSixteenBitsAndGivesWhatTheFloatsGive) {
  for (const Layer& layer : kLayers) {
    const Tensor x = random_tensor(layer.input, "x"), floats = random_tensor(layer.weight, "w");
    for (Held held : {Held::half, Held::brain, Held::scheme}) {
      SCOPED_TRACE(std::string(layer.op) + " " + std::to_string(static_cast<int>(held)));
      const bool is_brain = held == Held::brain;
      const Tensor narrow = cast(floats, is_brain ? DType::bf16 : DType::f16).value();
      const Ran want = run(network(layer, narrow, Held::float32), x), got = run(network(layer, narrow, held), x);
      const std::string kind = std::string(layer.op) == "Conv" ? "conv_" : "gemm_";
      EXPECT_NE(std::ranges::find(got.labels, kind + (is_brain ? "bf16" : "fp16")), got.labels.end());
      EXPECT_NE(std::ranges::find(want.labels, kind + "fp32"), want.labels.end());
      EXPECT_EQ(got.packed_bytes * 2, want.packed_bytes);
      EXPECT_EQ(got.output, want.output);
    }
  }
}

}  // namespace
}  // namespace ctk::runtime
