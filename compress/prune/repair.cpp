#include "compress/prune/repair.h"

#include <algorithm>

#include "compress/interrupt.h"
#include "compress/prune/read_layers.h"
#include "compress/quantize/layer_inputs.h"
#include "compress/quantize/stream.h"
#include "compress/quantize/triangular.h"
#include "graph/shapes.h"

namespace ctk::pruning {
namespace {

using graph::Coupling;
using graph::Graph;
using graph::Layer;
using graph::NodeId;
using graph::ValueId;
using quantization::Stream;

// The other operand of the one Add that reads the layer's output: what the layer's output is added to.
ValueId operand_beside(const Graph& graph, const Layer& layer) {
  const ValueId out = graph.node(layer.node).outputs[0];
  if (graph.value(out).consumers.size() != 1 || graph.is_output(out)) return {};
  const graph::Node& reader = graph.node(graph.value(out).consumers[0]);
  if (reader.op != graph::Op::Add || reader.inputs.size() != 2) return {};
  const ValueId other = reader.inputs[reader.inputs[0] == out ? 1 : 0];
  return other == out || graph.value(other).is_constant() ? ValueId{} : other;
}

std::size_t place_of(const Graph& graph, NodeId id) {
  return static_cast<std::size_t>(std::ranges::find(graph.order(), id) - graph.order().begin());
}

// Every `stride`-th row of a matrix.
std::vector<float> every(std::vector<float> rows, std::size_t columns, std::size_t stride) {
  if (stride == 1) return rows;
  std::vector<float> some;
  for (std::size_t at = 0; at + columns <= rows.size(); at += stride * columns) {
    some.insert(some.end(), rows.begin() + static_cast<std::ptrdiff_t>(at),
                rows.begin() + static_cast<std::ptrdiff_t>(at + columns));
  }
  return some;
}

std::vector<float> rows_of_input(const Graph& graph, const Layer& layer, const Tensor& input, std::size_t stride) {
  if (!quantization::is_product(graph, layer)) return quantization::patches(graph, layer, input, stride);
  const auto values = input.values<float>();
  return every({values.begin(), values.end()}, static_cast<std::size_t>(layer.reduction), stride);
}

// Rows of one picture tell much the same: so many rows a column are enough. Odd, so that all places of a picture come
// in turn.
constexpr std::size_t kRowsAColumn = 256, kFewestRows = 65536;
std::size_t stride_of(const Graph& graph, const Layer& layer, const Tensor& input, std::size_t samples) {
  const auto k = static_cast<std::size_t>(layer.reduction);
  std::size_t rows = input.size() / k;
  if (!quantization::is_product(graph, layer)) rows = quantization::patches(graph, layer, input).size() / k;
  const std::size_t stride = std::max<std::size_t>(1, rows * samples / std::max(kFewestRows, kRowsAColumn * k));
  return stride % 2 == 0 ? stride - 1 : stride;
}

// What the operand beside lost by the cut, as rows of the layer's output: [rows, n].
void add_lost(const Tensor& before, const Tensor& after, const std::vector<std::int64_t>& kept, bool channels_last,
              std::size_t stride, std::vector<float>& rows) {
  const auto n = kept.size();
  const auto channels = static_cast<std::size_t>(channels_last ? before.shape().back() : before.shape()[1]);
  const auto samples = static_cast<std::size_t>(channels_last ? 1 : before.shape()[0]);
  const std::size_t places = before.size() / channels / samples;
  const float* old = before.values<float>().data();
  const float* now = after.values<float>().data();
  for (std::size_t row = 0, to = 0; row < samples * places; row += stride, ++to) {
    const std::size_t s = row / places, p = row % places;
    for (std::size_t c = 0; c < n; ++c) {
      const auto from = static_cast<std::size_t>(kept[c]);
      const std::size_t a = channels_last ? p * channels + from : (s * channels + from) * places + p;
      const std::size_t b = channels_last ? p * n + c : (s * n + c) * places + p;
      rows[to * n + c] += old[a] - now[b];
    }
  }
}

// As many samples as the memory holds: the largest value and its input, in both networks.
std::size_t samples_of(const Graph& graph, const data::Split& split, const RepairOptions& options) {
  const std::size_t wish = std::min(options.most_samples, split.count());
  if (wish == 0) return 0;
  const auto sample = split.read(0, 1);
  if (!sample) return wish;
  std::vector<Shape> shapes;
  for (const Tensor& input : sample->inputs) shapes.push_back(input.shape());
  const auto infos = graph::infer_shapes(graph, shapes, true);
  std::size_t largest = 1;
  for (std::size_t i = 0; infos && i < infos->size(); ++i) {
    const bool is_constant = graph.value(ValueId{static_cast<std::uint32_t>(i)}).is_constant();
    if ((*infos)[i].known && !is_constant) largest = std::max(largest, 4 * elements((*infos)[i].info.shape));
  }
  return std::clamp<std::size_t>(options.most_bytes / (4 * largest), 1, wish);
}

// Fitting one layer: sums over its rows, those held out apart.
struct Fit {
  Layer before, after;
  ValueId beside;  // invalid: none
  std::vector<std::int64_t> kept_rows, kept_beside;
  LinearMap target, plain;  // of the float network, the rows that stay; as cut
  std::size_t stride = 1;   // between rows that are used

  Status add(const Coupling& coupling, const Graph& cut, const Stream& whole, const Stream& part, std::size_t sample,
             RowSums& sums) const {
    const Graph& graph = coupling.graph();
    const std::vector<float> x = rows_of_input(graph, before, whole.value(sample, before.input), stride);
    const std::vector<float> now = rows_of_input(cut, after, part.value(sample, after.input), stride);
    const std::size_t n = target.intercept.size(), k = static_cast<std::size_t>(before.reduction);
    const std::size_t rows = x.size() / k;
    std::vector<float> y(rows * n);
    quantization::multiply_transposed(x, rows, target.weights, n, k, y);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += target.intercept[i % n];
    if (beside.is_valid() && whole.has(sample, beside) && part.has(sample, beside)) {
      const Tensor& old = whole.value(sample, beside);
      const bool is_last = quantization::is_product(graph, before);
      const std::size_t lost = old.size() / static_cast<std::size_t>(before.channels);
      const bool fits = (lost + stride - 1) / stride == rows;
      if (fits) add_lost(old, part.value(sample, beside), kept_beside, is_last, stride, y);
    }
    sums.add(now, y);
    return {};
  }
};

// Layers that read cut channels, and all behind the first of them whose input is therefore another.
std::vector<Layer> layers_behind(const Coupling& coupling, const std::vector<bool>& mask) {
  const Graph& graph = coupling.graph();
  std::vector<bool> is_other(graph.value_capacity(), false);
  std::vector<Layer> layers;
  for (NodeId id : graph.order()) {
    const graph::Node& node = graph.node(id);
    bool changes = false;
    for (ValueId input : node.inputs) changes |= input.is_valid() && is_other[input.index];
    const auto layer = graph::layer_of(graph, id);
    if (layer && can_refit(graph, *layer)) {
      const std::size_t kept = coupling.kept(layer->weight, input_axis(*layer), mask).size();
      const Shape& shape = graph.value(layer->weight).constant->shape();
      changes |= static_cast<std::int64_t>(kept) < shape[input_axis(*layer)];
      if (changes) layers.push_back(*layer);
    }
    for (ValueId output : node.outputs) {
      if (output.is_valid() && changes) is_other[output.index] = true;
    }
  }
  return layers;
}

}  // namespace

Result<std::vector<RepairedLayer>> repair(const Coupling& coupling, const Coupling::Units& removed, Graph& cut,
                                          const data::Split& split, const RepairOptions& options) {
  const Graph& graph = coupling.graph();
  const std::vector<bool> mask = coupling.mask_of(removed);
  const std::vector<Layer> layers = layers_behind(coupling, mask);
  const std::size_t count = samples_of(graph, split, options);
  Stream whole(graph), part(cut);
  for (std::size_t i = 0; i < count; ++i) {
    CTK_TRY(const data::Batch sample, split.read(i, i + 1));
    CTK_CHECK(whole.begin(sample.inputs));
    CTK_CHECK(part.begin(sample.inputs));
  }
  std::vector<RepairedLayer> report;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    CTK_CHECK(check_interrupt());
    Fit fit;
    fit.before = layers[l];
    fit.after = *graph::layer_of(cut, layers[l].node);
    fit.beside = operand_beside(graph, fit.before);
    fit.kept_rows = coupling.kept(fit.before.weight, static_cast<std::size_t>(fit.before.channel_axis), mask);
    if (fit.beside.is_valid()) {
      const std::size_t dim = quantization::is_product(graph, fit.before)
                                  ? coupling.shape_without(fit.beside, mask).size() - 1
                                  : std::size_t{1};
      fit.kept_beside = coupling.kept(fit.beside, dim, mask);
      if (fit.kept_beside.size() != fit.kept_rows.size()) fit.beside = {};
    }
    fit.target = rows_of(map_of(graph, fit.before), fit.kept_rows);
    fit.plain = map_of(cut, fit.after);
    const std::size_t place = place_of(graph, fit.before.node);
    CTK_CHECK(whole.advance(place));
    CTK_CHECK(part.advance(place));
    fit.stride = count == 0 ? 1 : stride_of(graph, fit.before, whole.value(0, fit.before.input), count);
    const auto k = static_cast<std::size_t>(fit.after.reduction);
    RowSums sums(k, fit.target.intercept.size()), held_out(k, fit.target.intercept.size());
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_held = count > 1 && (i + 1) % std::min(options.hold_out_every, count) == 0;
      CTK_CHECK(fit.add(coupling, cut, whole, part, i, is_held ? held_out : sums));
    }
    const RowSums& judge = held_out.rows() > 0 ? held_out : sums;
    RepairedLayer line{graph.address(fit.before.node), judge.error_of(fit.plain), 0, false};
    line.error_after = line.error_before;
    if (const auto map = sums.solve(fit.plain.weights, options.ridge, has_own_bias(cut, fit.after))) {
      const double error = judge.error_of(*map);
      if (error < line.error_before) {
        set_map(cut, fit.after, *map);
        line.error_after = error;
        line.is_changed = true;
      }
    }
    report.push_back(std::move(line));
    if (options.progress) options.progress(l + 1, layers.size());
  }
  return report;
}

Result<InputSums> input_sums(const Coupling& coupling, const data::Split& split, const RepairOptions& options) {
  const Graph& graph = coupling.graph();
  const std::vector<Layer> layers = reading_layers(coupling);
  const std::size_t count = samples_of(graph, split, options);
  Stream whole(graph);
  for (std::size_t i = 0; i < count; ++i) {
    CTK_TRY(const data::Batch sample, split.read(i, i + 1));
    CTK_CHECK(whole.begin(sample.inputs));
  }
  InputSums sums;
  for (const Layer& layer : layers) {
    CTK_CHECK(check_interrupt());
    CTK_CHECK(whole.advance(place_of(graph, layer.node)));
    RowSums& one = sums.emplace(layer.node, RowSums(static_cast<std::size_t>(layer.reduction), 0)).first->second;
    const std::size_t stride = count == 0 ? 1 : stride_of(graph, layer, whole.value(0, layer.input), count);
    for (std::size_t i = 0; i < count; ++i) {
      one.add(rows_of_input(graph, layer, whole.value(i, layer.input), stride), {});
    }
  }
  return sums;
}

void repair_from_sums(const Coupling& coupling, const Coupling::Units& removed, const InputSums& sums, double ridge,
                      Graph& cut) {
  const Graph& graph = coupling.graph();
  const std::vector<bool> mask = coupling.mask_of(removed);
  for (const Layer& layer : reading_layers(coupling)) {
    const auto known = sums.find(layer.node);
    const auto kept = coupling.kept(layer.weight, input_axis(layer), mask);
    if (known == sums.end() ||
        static_cast<std::int64_t>(kept.size()) == graph.value(layer.weight).constant->shape()[input_axis(layer)])
      continue;
    const Layer after = *graph::layer_of(cut, layer.node);
    const auto rows = coupling.kept(layer.weight, static_cast<std::size_t>(layer.channel_axis), mask);
    const LinearMap target = rows_of(map_of(graph, layer), rows), plain = map_of(cut, after);
    const RowSums part = known->second.of_columns(target, columns_of(coupling, layer, kept));
    const auto map = part.solve(plain.weights, ridge, has_own_bias(cut, after));
    if (map && part.error_of(*map) < part.error_of(plain)) set_map(cut, after, *map);
  }
}

}  // namespace ctk::pruning
