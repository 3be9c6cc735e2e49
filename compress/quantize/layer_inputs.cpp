#include "compress/quantize/layer_inputs.h"

#include <algorithm>
#include <map>
#include <set>

#include "compress/interrupt.h"
#include "core/printable.h"
#include "graph/subgraph.h"
#include "runtime/cpu_executor.h"

namespace ctk::quantization {
namespace {

using graph::Graph;
using graph::Layer;
using graph::NodeId;
using graph::ValueId;

// Layers that read one value and stand at one place of the order.
struct Group {
  std::size_t place = 0;  // of the first of them in the order
  ValueId input;
  std::vector<Layer> layers;
};

bool is_product(const Graph& graph, const Layer& layer) {
  const graph::Op op = graph.node(layer.node).op;
  return op == graph::Op::Gemm || op == graph::Op::MatMul;
}

std::vector<Group> groups_in_order(const Graph& graph, const std::vector<std::string>& wanted) {
  const std::set<std::string> names(wanted.begin(), wanted.end());
  std::vector<Group> groups;
  const std::vector<NodeId>& order = graph.order();
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (!names.contains(graph.address(order[place]))) continue;
    const auto layer = graph::layer_of(graph, order[place]);
    if (!layer) continue;
    const auto known = std::ranges::find_if(groups, [&](const Group& group) {
      const bool are_products = is_product(graph, group.layers[0]) && is_product(graph, *layer);
      return group.input == layer->input && are_products && group.layers[0].reduction == layer->reduction;
    });
    if (known != groups.end()) {
      known->layers.push_back(*layer);
    } else {
      groups.push_back({place, layer->input, {*layer}});
    }
  }
  return groups;
}

// The network run up to some place: the values that later nodes still read, of every sample.
class Stream {
 public:
  explicit Stream(const Graph& graph) : graph_(graph) {}

  Status begin(const std::vector<Tensor>& inputs) {
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

  // Runs nodes [place, next) of every sample. Integers that follow from shapes are constants of a part, so samples of
  // other sizes take another; all of them share packed weights.
  Status advance(std::size_t next) {
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

  const Tensor& value(std::size_t sample, ValueId id) const { return samples_[sample].values.at(id); }

 private:
  struct Sample {
    std::vector<Shape> shapes;  // of the graph's inputs
    std::map<ValueId, Tensor> values;
  };
  struct Part {
    graph::Subgraph nodes;
    std::unique_ptr<runtime::CpuExecutor> executor;
  };

  std::set<ValueId> read_from(std::size_t place) const {
    std::set<ValueId> needed;
    for (std::size_t i = place; i < graph_.order().size(); ++i) {
      for (ValueId input : graph_.node(graph_.order()[i]).inputs) needed.insert(input);
    }
    return needed;
  }

  const Graph& graph_;
  std::map<std::vector<Shape>, std::vector<graph::InferredValue>> infos_;
  std::vector<Sample> samples_;
  std::size_t place_ = 0;
};

bool is_held_out(std::size_t sample, std::size_t count, std::size_t every) {
  if (count < 2 || every == 0) return false;
  return count < every ? sample + 1 == count : (sample + 1) % every == 0;
}

// Rows of inputs as the products see them: [.., K] as it lies; a convolution's patches.
std::vector<float> patches(const Graph& graph, const Layer& layer, const Tensor& input) {
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
  std::vector<float> out(static_cast<std::size_t>(rows * layer.reduction), 0.0f);
  float* to = out.data();
  const float* from = input.values<float>().data();
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t y = 0; y < extent(0); ++y) {
      for (std::int64_t x = 0; x < extent(1); ++x) {
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

Status add_rows(const Graph& graph, const Layer& layer, const Tensor& original, const Tensor& coded, bool hold_out,
                LayerInputs& inputs) {
  calibrate::Moment& moment = hold_out ? inputs.held_out : inputs.coded;
  calibrate::CrossMoment& cross = hold_out ? inputs.held_out_cross : inputs.cross;
  if (is_product(graph, layer)) {
    CTK_CHECK(moment.add(coded.values<float>()));
    return cross.add(coded.values<float>(), original.values<float>());
  }
  const std::vector<float> rows = patches(graph, layer, coded);
  CTK_CHECK(moment.add(rows));
  return cross.add(rows, patches(graph, layer, original));
}

}  // namespace

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

Status walk_layers(const Graph& original, Graph& coded, const std::vector<std::string>& wanted,
                   const data::Split& split, const WalkOptions& options, const CodeLayers& code) {
  const std::vector<Group> groups = groups_in_order(original, wanted);
  const std::size_t count = split.count();
  Stream before(original), after(coded);
  for (std::size_t i = 0; i < count; ++i) {
    CTK_TRY(const data::Batch sample, split.read(i, i + 1));
    CTK_CHECK(before.begin(sample.inputs));
    CTK_CHECK(after.begin(sample.inputs));
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const std::string address = printable(original.address(group.layers[0].node));
    CTK_CHECK(before.advance(group.place));
    CTK_CHECK(after.advance(group.place));
    LayerInputs inputs(static_cast<std::size_t>(group.layers[0].reduction));
    for (std::size_t i = 0; i < count; ++i) {
      const bool hold_out = is_held_out(i, count, options.hold_out_every);
      auto added = add_rows(original, group.layers[0], before.value(i, group.input), after.value(i, group.input),
                            hold_out, inputs);
      if (!added) return std::move(added).error().with_context(address + ", " + split.source->where(split.indices[i]));
    }
    CTK_CHECK(code(coded, group.layers, inputs));
    if (options.progress) options.progress(g + 1, groups.size());
  }
  return {};
}

std::vector<float> weight_rows(const Layer& layer, const Tensor& weight) {
  const auto values = weight.values<float>();
  if (layer.channel_axis == 0) return {values.begin(), values.end()};
  const auto k = static_cast<std::size_t>(layer.reduction), n = static_cast<std::size_t>(layer.channels);
  std::vector<float> rows(values.size());
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < n; ++j) rows[j * k + i] = values[i * n + j];
  }
  return rows;
}

template <class T>
std::vector<T> from_rows(const Layer& layer, std::span<const T> rows) {
  if (layer.channel_axis == 0) return {rows.begin(), rows.end()};
  const auto k = static_cast<std::size_t>(layer.reduction), n = static_cast<std::size_t>(layer.channels);
  std::vector<T> values(rows.size());
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < n; ++j) values[i * n + j] = rows[j * k + i];
  }
  return values;
}

template std::vector<std::int8_t> from_rows(const Layer&, std::span<const std::int8_t>);

}  // namespace ctk::quantization
