#include "compress/quantize/stream.h"

#include <algorithm>

#include "compress/interrupt.h"
#include "core/mapped_pages.h"
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

// Of the packed copy that a layer's float kernel makes; codes that have kernels of their own stay codes.
std::size_t float_bytes_of(const Graph& graph, graph::NodeId id) {
  const auto layer = graph::layer_of(graph, id);
  if (!layer) return 0;
  const graph::Value& weight = graph.value(layer->weight);
  return weight.constant ? 4 * weight.constant->size() : 0;
}

// What was read of a mapped file to pack a layer's weight.
void release_weight(const Graph& graph, graph::NodeId id) {
  const auto layer = graph::layer_of(graph, id);
  if (!layer) return;
  const graph::Value& weight = graph.value(layer->weight);
  const Tensor& held = weight.constant ? *weight.constant : weight.quantized->codes;
  release_pages(held.data(), held.bytes());
}

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

Stream::Stream(const Graph& graph, StreamOptions options) : graph_(graph), options_(std::move(options)) {
  if (options_.store == nullptr) options_.store = std::make_shared<ValueStore>();
}

Status Stream::begin(const std::vector<Tensor>& inputs) {
  Sample sample;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    CTK_TRY(sample.values[graph_.inputs()[i]], options_.store->keep(inputs[i]));
    sample.shapes.push_back(inputs[i].shape());
  }
  if (!infos_.contains(sample.shapes)) {
    CTK_TRY(infos_[sample.shapes], graph::infer_shapes(graph_, sample.shapes));
  }
  samples_.push_back(std::move(sample));
  return {};
}

Status Stream::advance(std::size_t next) {
  while (place_ < next) CTK_CHECK(run_part(end_of_part(next), nullptr));
  return {};
}

Status Stream::finish(const Visitor& visit) {
  const std::size_t last = graph_.order().size();
  for (std::size_t end = end_of_part(last); end < last; end = end_of_part(last)) CTK_CHECK(run_part(end, nullptr));
  return run_part(last, &visit);
}

// The farthest place from here on that few enough weights lie before; of the last places, the one that the fewest bytes
// cross.
std::size_t Stream::end_of_part(std::size_t most) const {
  const std::vector<graph::NodeId>& order = graph_.order();
  std::size_t end = place_, bytes = 0;
  for (; end < most; ++end) {
    const std::size_t more = float_bytes_of(graph_, order[end]);
    if (end > place_ && more > 0 && bytes + more > options_.part_bytes) break;
    bytes += more;
  }
  if (end == most || samples_.empty()) return end;
  std::map<graph::NodeId, std::size_t> place_of;
  for (std::size_t i = 0; i < order.size(); ++i) place_of[order[i]] = i;
  const auto& infos = infos_.at(samples_[0].shapes);
  std::vector<std::size_t> crossing(end + 1, 0);  // [place]: bytes made before it and read from it on
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const graph::Value& value = graph_.value(ValueId{static_cast<std::uint32_t>(i)});
    if (value.is_removed || value.is_constant() || !infos[i].known) continue;
    if (value.producer.is_valid() && !place_of.contains(value.producer)) continue;
    const std::size_t made = value.producer.is_valid() ? place_of[value.producer] + 1 : 0;
    std::size_t read = 0;
    for (graph::NodeId reader : value.consumers) {
      if (const auto at = place_of.find(reader); at != place_of.end()) read = std::max(read, at->second);
    }
    for (std::size_t p = made; p <= std::min(read, end); ++p) crossing[p] += elements(infos[i].info.shape);
  }
  const std::size_t least = place_ + (end - place_ + 1) / 2;
  std::size_t best = end;
  for (std::size_t p = end; p >= std::max(least, place_ + 1); --p) {
    if (crossing[p] < crossing[best]) best = p;
  }
  return best;
}

Status Stream::run_part(std::size_t end, const Visitor* visit) {
  std::map<std::vector<Shape>, std::unique_ptr<Part>> parts;
  const auto packed = std::make_shared<runtime::PackedWeights>();
  const std::set<ValueId> needed = read_from(end);
  for (std::size_t s = 0; s < samples_.size(); ++s) {
    Sample& sample = samples_[s];
    CTK_CHECK(check_interrupt());
    std::unique_ptr<Part>& part = parts[sample.shapes];
    if (part == nullptr) {
      part = std::make_unique<Part>();
      CTK_TRY(part->nodes, graph::extract(graph_, place_, end, infos_.at(sample.shapes)));
    }
    std::vector<Tensor> inputs;
    std::vector<Shape> shapes;
    for (ValueId id : part->nodes.inputs) {
      CTK_TRY(Tensor input, sample.values.at(id).read());
      shapes.push_back(input.shape());
      inputs.push_back(std::move(input));
    }
    if (part->executor == nullptr) {
      CTK_TRY(part->executor, runtime::CpuExecutor::create(part->nodes.graph, shapes, {{}, options_.fuse, packed}));
    }
    CTK_TRY(std::vector<Tensor> outputs, part->executor->run(inputs));
    inputs.clear();
    std::map<ValueId, Tensor> made;
    for (std::size_t i = 0; i < outputs.size(); ++i) made[part->nodes.outputs[i]] = std::move(outputs[i]);
    if (visit != nullptr) {
      std::vector<Tensor> results;
      for (ValueId id : graph_.outputs()) {
        if (const auto found = made.find(id); found != made.end()) {
          results.push_back(found->second);
        } else {
          CTK_TRY(results.emplace_back(), sample.values.at(id).read());
        }
      }
      made.clear();
      sample.values.clear();
      CTK_CHECK((*visit)(s, std::move(results)));
      continue;
    }
    std::erase_if(sample.values, [&](const auto& entry) { return !needed.contains(entry.first); });
    for (auto& [id, tensor] : made) {
      if (!needed.contains(id)) continue;
      CTK_TRY(sample.values[id], options_.store->keep(std::move(tensor)));
    }
  }
  for (std::size_t i = place_; i < end; ++i) release_weight(graph_, graph_.order()[i]);
  place_ = end;
  return {};
}

std::set<ValueId> Stream::read_from(std::size_t place) const {
  std::set<ValueId> needed(graph_.outputs().begin(), graph_.outputs().end());
  for (std::size_t i = place; i < graph_.order().size(); ++i) {
    for (ValueId input : graph_.node(graph_.order()[i]).inputs) needed.insert(input);
  }
  return needed;
}

std::size_t float_weight_bytes(const Graph& graph) {
  std::size_t bytes = 0;
  for (graph::NodeId id : graph.order()) bytes += float_bytes_of(graph, id);
  return bytes;
}

}  // namespace ctk::quantization
