#include "compress/bench_suites/networks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/calibration.h"
#include "compress/quantize/apply.h"
#include "compress/quantize/notes.h"
#include "core/random.h"
#include "graph/layer.h"
#include "graph/passes/passes.h"
#include "runtime/cpu_executor.h"

namespace ctk::pipeline {
namespace {

using graph::Graph;
using graph::ValueId;
using Ints = std::vector<std::int64_t>;
using Attrs = std::vector<std::pair<const char*, graph::Attribute>>;

enum class Activation { none, relu, relu6 };

struct Conv {
  std::int64_t from, to, kernel, stride = 1, groups = 1;
  Activation activation = Activation::relu;
};

// Adds nodes one after the other; every weight gets noise that keeps the variance of what passes through.
class Builder {
 public:
  Builder(std::int64_t channels, std::int64_t size) {
    graph::DeclaredShape shape;
    for (const std::int64_t dim : {std::int64_t{1}, channels, size, size}) shape.push_back({dim, ""});
    input = graph_.add_value("input", DType::f32, shape);
    graph_.add_input(input);
  }

  ValueId node(const char* op_type, std::vector<ValueId> inputs, const Attrs& attributes = {}) {
    graph::Node node;
    node.op_type = op_type;
    node.name = std::string(op_type) + std::to_string(++count_);
    node.inputs = std::move(inputs);
    for (const auto& [name, value] : attributes) node.attributes.set(name, value);
    const ValueId out = graph_.add_value("t" + std::to_string(count_), DType::f32);
    node.outputs = {out};
    graph_.add_node(std::move(node));
    return out;
  }

  ValueId constant(Tensor tensor) { return graph_.add_constant("c" + std::to_string(++count_), std::move(tensor)); }

  ValueId conv(ValueId x, const Conv& c) {
    const std::int64_t fan = c.from / c.groups * c.kernel * c.kernel, pad = c.kernel / 2;
    const std::string purpose = "bench weight " + std::to_string(count_);
    const ValueId w = constant(
        noise({c.to, c.from / c.groups, c.kernel, c.kernel}, std::sqrt(2.0 / static_cast<double>(fan)), purpose));
    const ValueId bias = constant(noise({c.to}, 0.1, purpose + " bias"));
    const ValueId y = node("Conv", {x, w, bias},
                           {{"kernel_shape", Ints{c.kernel, c.kernel}},
                            {"strides", Ints{c.stride, c.stride}},
                            {"pads", Ints{pad, pad, pad, pad}},
                            {"group", c.groups}});
    switch (c.activation) {
      case Activation::relu:
        return node("Relu", {y});
      case Activation::relu6:
        return node("Clip", {y, constant(Tensor::scalar(0.0f)), constant(Tensor::scalar(6.0f))});
      case Activation::none:
        break;
    }
    return y;
  }

  // Mean over each channel, then 1000 classes.
  ValueId head(ValueId x, std::int64_t channels) {
    const ValueId flat = node("Flatten", {node("GlobalAveragePool", {x})});
    const ValueId w = constant(noise({1000, channels}, 1 / std::sqrt(static_cast<double>(channels)), "bench head"));
    return node("Gemm", {flat, w, constant(noise({1000}, 0.1, "bench head bias"))}, {{"transB", std::int64_t{1}}});
  }

  Graph finish(ValueId output) {
    graph_.add_output(output);
    return std::move(graph_);
  }

  ValueId input;

 private:
  Graph graph_;
  int count_ = 0;
};

Graph build_resnet18() {
  Builder b(3, 224);
  ValueId x = b.conv(b.input, {3, 64, 7, 2});
  x = b.node("MaxPool", {x}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  std::int64_t from = 64;
  for (const std::int64_t to : {64, 64, 128, 128, 256, 256, 512, 512}) {
    const std::int64_t stride = to == from ? 1 : 2;
    ValueId y = b.conv(x, {from, to, 3, stride});
    y = b.conv(y, {.from = to, .to = to, .kernel = 3, .activation = Activation::none});
    const ValueId shortcut =
        stride == 1 ? x : b.conv(x, {.from = from, .to = to, .kernel = 1, .stride = 2, .activation = Activation::none});
    x = b.node("Relu", {b.node("Add", {y, shortcut})});
    from = to;
  }
  return b.finish(b.head(x, 512));
}

Graph build_mobilenetv2() {
  struct Stage {
    std::int64_t expansion, channels, count, stride;
  };
  Builder b(3, 224);
  ValueId x = b.conv(b.input, {3, 32, 3, 2, 1, Activation::relu6});
  std::int64_t from = 32;
  for (const Stage& stage : {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                             Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}}) {
    for (std::int64_t i = 0; i < stage.count; ++i) {
      const std::int64_t stride = i == 0 ? stage.stride : 1, inner = from * stage.expansion;
      ValueId y = stage.expansion == 1 ? x : b.conv(x, {from, inner, 1, 1, 1, Activation::relu6});
      y = b.conv(y, {inner, inner, 3, stride, inner, Activation::relu6});
      y = b.conv(y, {inner, stage.channels, 1, 1, 1, Activation::none});
      x = stride == 1 && from == stage.channels ? b.node("Add", {x, y}) : y;
      from = stage.channels;
    }
  }
  return b.finish(b.head(b.conv(x, {from, 1280, 1, 1, 1, Activation::relu6}), 1280));
}

// Least and greatest of every float value on one noise input.
Result<std::map<std::string, calibrate::Range>> ranges_on_noise(const Graph& graph, const Shape& shape) {
  runtime::ExecutorOptions options;
  CTK_TRY(options.keep, quantization::values_to_observe(graph, std::span(&shape, 1)));
  CTK_TRY(auto executor, runtime::CpuExecutor::create(graph, {shape}, options));
  std::map<std::string, calibrate::Range> ranges;
  const Tensor input = noise(shape, 1.0, "bench calibration");
  CTK_TRY(const auto outputs,
          executor->run_observed(std::span(&input, 1), [&](ValueId id, const TensorView& view, bool) -> Status {
            calibrate::Range range;
            range.value = graph.value(id).name;
            for (const float v : view.values<float>()) {
              range.low = std::min(range.low, v);
              range.high = std::max(range.high, v);
            }
            ranges[range.value] = range;
            return {};
          }));
  return ranges;
}

}  // namespace

std::span<const ConvChain> conv_chains() {
  static constexpr ConvChain chains[] = {
      {"conv3x3_64_56", 64, 56, 3, 1},   {"conv3x3_128_28", 128, 28, 3, 1}, {"conv3x3_256_14", 256, 14, 3, 1},
      {"conv1x1_256_14", 256, 14, 1, 1}, {"dw3x3_32_112", 32, 112, 3, 32},
  };
  return chains;
}

std::span<const BenchNetwork> bench_networks() {
  static constexpr BenchNetwork networks[] = {{"resnet18", build_resnet18}, {"mobilenetv2", build_mobilenetv2}};
  return networks;
}

Graph build_chain(const ConvChain& chain) {
  Builder b(chain.channels, chain.size);
  ValueId x = b.input;
  for (int i = 0; i < kChainLayers; ++i) x = b.conv(x, {chain.channels, chain.channels, chain.kernel, 1, chain.groups});
  return b.finish(x);
}

Status quantize_network(Graph& graph) {
  CTK_TRY(const auto outcomes, graph::run_passes(graph));
  Shape shape;
  for (const graph::Dim& dim : *graph.value(graph.inputs()[0]).shape) shape.push_back(dim.size);
  CTK_TRY(const auto ranges, ranges_on_noise(graph, shape));
  CTK_TRY(const QuantScheme scheme, parse_scheme("w8a8_c"));
  quantization::SchemeMap schemes;
  for (const graph::Layer& layer : graph::layers_of(graph)) schemes[graph.address(layer.node)] = scheme;
  CTK_TRY(const auto applied, quantization::apply_schemes(graph, schemes, ranges, {}));
  return {};
}

Tensor noise(Shape shape, double deviation, std::string_view purpose) {
  Random random(0, purpose);
  Tensor tensor = Tensor::zeros(DType::f32, std::move(shape)).value();
  for (float& v : tensor.mutable_values<float>()) v = static_cast<float>(deviation * random.normal());
  return tensor;
}

}  // namespace ctk::pipeline
