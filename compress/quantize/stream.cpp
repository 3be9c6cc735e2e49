#include "compress/quantize/stream.h"

#include "compress/interrupt.h"
#include "graph/subgraph.h"
#include "runtime/cpu_executor.h"

namespace ctk::quantization {

using graph::Graph;
using graph::Layer;
using graph::ValueId;

namespace {

struct Part {
  graph::Subgraph nodes;
  std::unique_ptr<runtime::CpuExecutor> executor;
};

}  // namespace

bool is_product(const Graph& graph, const Layer& layer) {
  const graph::Op op = graph.node(layer.node).op;
  return op == graph::Op::Gemm || op == graph::Op::MatMul;
}

bool has_rows(const Graph& graph, const Layer& layer) {
  const graph::Node& node = graph.node(layer.node);
  switch (node.op) {
    case graph::Op::Gemm:
    case graph::Op::MatMul:
      return true;
    case graph::Op::Conv: {
      const graph::Value& weight = graph.value(layer.weight);
      const std::size_t rank =
          weight.constant ? weight.constant->shape().size() : weight.quantized->codes.shape().size();
      return node.attributes.get_int("group", 1) == 1 && rank <= 4;
    }
    default:
      return false;
  }
}

std::vector<float> patches(const Graph& graph, const Layer& layer, const Tensor& input, std::size_t every) {
  const graph::Node& node = graph.node(layer.node);
  const graph::Value& weight = graph.value(layer.weight);
  const Shape& kernel = weight.constant ? weight.constant->shape() : weight.quantized->codes.shape();
  const Shape& shape = input.shape();
  const std::size_t rank = shape.size() - 2;
  const auto attribute = [&](const char* name, std::size_t at, std::int64_t fallback) {
    const auto values = node.attributes.get_ints(name);
    return at < values.size() ? values[at] : fallback;
  };
  // One-dimensional convolutions are two-dimensional ones of height 1.
  std::int64_t size[2] = {1, shape[rank + 1]}, window[2] = {1, kernel[rank + 1]}, stride[2] = {1, 1},
               dilation[2] = {1, 1};
  std::int64_t before[2] = {0, 0}, after[2] = {0, 0};
  for (std::size_t d = 0; d < rank; ++d) {
    const std::size_t to = 2 - rank + d;
    size[to] = shape[2 + d];
    window[to] = kernel[2 + d];
    stride[to] = attribute("strides", d, 1);
    dilation[to] = attribute("dilations", d, 1);
    before[to] = attribute("pads", d, 0);
    after[to] = attribute("pads", rank + d, 0);
  }
  const auto extent = [&](int d) {
    return (size[d] + before[d] + after[d] - dilation[d] * (window[d] - 1) - 1) / stride[d] + 1;
  };
  const std::int64_t channels = shape[1], plane = size[0] * size[1], rows = shape[0] * extent(0) * extent(1);
  const auto step = static_cast<std::int64_t>(every);
  std::vector<float> out(static_cast<std::size_t>((rows + step - 1) / step * layer.reduction), 0.0f);
  float* to = out.data();
  const float* from = input.values<float>().data();
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t y = 0; y < extent(0); ++y) {
      for (std::int64_t x = 0; x < extent(1); ++x) {
        if (every > 1 && ((n * extent(0) + y) * extent(1) + x) % step != 0) continue;
        for (std::int64_t c = 0; c < channels; ++c) {
          for (std::int64_t i = 0; i < window[0]; ++i) {
            const std::int64_t row = y * stride[0] - before[0] + i * dilation[0];
            for (std::int64_t j = 0; j < window[1]; ++j, ++to) {
              const std::int64_t column = x * stride[1] - before[1] + j * dilation[1];
              const bool is_inside = row >= 0 && row < size[0] && column >= 0 && column < size[1];
              if (is_inside) *to = from[(n * channels + c) * plane + row * size[1] + column];
            }
          }
        }
      }
    }
  }
  return out;
}

Status Stream::begin(const std::vector<Tensor>& inputs) {
  Sample sample;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    sample.values[graph_.inputs()[i]] = inputs[i];
    sample.shapes.push_back(inputs[i].shape());
  }
  if (!infos_.contains(sample.shapes)) {
    CTK_TRY(infos_[sample.shapes], graph::infer_shapes(graph_, sample.shapes));
  }
  samples_.push_back(std::move(sample));
  return {};
}

Status Stream::advance(std::size_t next) {
  if (next <= place_) return {};
  std::map<std::vector<Shape>, std::unique_ptr<Part>> parts;
  const auto packed = std::make_shared<runtime::PackedWeights>();
  const std::set<ValueId> needed = read_from(next);
  for (Sample& sample : samples_) {
    CTK_CHECK(check_interrupt());
    std::unique_ptr<Part>& part = parts[sample.shapes];
    if (part == nullptr) {
      part = std::make_unique<Part>();
      CTK_TRY(part->nodes, graph::extract(graph_, place_, next, infos_.at(sample.shapes)));
    }
    std::vector<Tensor> inputs;
    std::vector<Shape> shapes;
    for (ValueId id : part->nodes.inputs) {
      inputs.push_back(sample.values.at(id));
      shapes.push_back(inputs.back().shape());
    }
    if (part->executor == nullptr) {
      CTK_TRY(part->executor, runtime::CpuExecutor::create(part->nodes.graph, shapes, {{}, true, packed}));
    }
    CTK_TRY(std::vector<Tensor> outputs, part->executor->run(inputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) sample.values[part->nodes.outputs[i]] = std::move(outputs[i]);
    std::erase_if(sample.values, [&](const auto& entry) { return !needed.contains(entry.first); });
  }
  place_ = next;
  return {};
}

std::set<ValueId> Stream::read_from(std::size_t place) const {
  std::set<ValueId> needed(graph_.outputs().begin(), graph_.outputs().end());
  for (std::size_t i = place; i < graph_.order().size(); ++i) {
    for (ValueId input : graph_.node(graph_.order()[i]).inputs) needed.insert(input);
  }
  return needed;
}

}  // namespace ctk::quantization
