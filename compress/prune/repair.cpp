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

std::vector<float> rows_of_input(const Graph& graph, const Layer& layer, const Tensor& input) {
  if (!quantization::is_product(graph, layer)) return quantization::patches(graph, layer, input);
  const auto values = input.values<float>();
  return {values.begin(), values.end()};
}

// What the operand beside lost by the cut, as rows of the layer's output: [rows, n].
void add_lost(const Tensor& before, const Tensor& after, const std::vector<std::int64_t>& kept, bool channels_last,
              std::vector<float>& rows) {
  const auto n = kept.size();
  const auto channels = static_cast<std::size_t>(channels_last ? before.shape().back() : before.shape()[1]);
  const std::size_t count = rows.size() / std::max<std::size_t>(n, 1);
  const auto samples = static_cast<std::size_t>(channels_last ? 1 : before.shape()[0]);
  const std::size_t places = count / samples;
  const float* old = before.values<float>().data();
  const float* now = after.values<float>().data();
  for (std::size_t s = 0; s < samples; ++s) {
    for (std::size_t p = 0; p < places; ++p) {
      for (std::size_t c = 0; c < n; ++c) {
        const auto from = static_cast<std::size_t>(kept[c]);
        const std::size_t a = channels_last ? p * channels + from : (s * channels + from) * places + p;
        const std::size_t b = channels_last ? p * n + c : (s * n + c) * places + p;
        rows[(s * places + p) * n + c] += old[a] - now[b];
      }
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

  Status add(const Coupling& coupling, const Graph& cut, const Stream& whole, const Stream& part, std::size_t sample,
             RowSums& sums) const {
    const Graph& graph = coupling.graph();
    const std::vector<float> x = rows_of_input(graph, before, whole.value(sample, before.input));
    const std::vector<float> now = rows_of_input(cut, after, part.value(sample, after.input));
    const std::size_t n = target.intercept.size(), k = static_cast<std::size_t>(before.reduction);
    const std::size_t rows = x.size() / k;
    std::vector<float> y(rows * n);
    quantization::multiply_transposed(x, rows, target.weights, n, k, y);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += target.intercept[i % n];
    if (beside.is_valid() && whole.has(sample, beside) && part.has(sample, beside)) {
      const Tensor& old = whole.value(sample, beside);
      const bool is_last = quantization::is_product(graph, before);
      const bool fits = old.size() * n == y.size() * static_cast<std::size_t>(before.channels);
      if (fits) add_lost(old, part.value(sample, beside), kept_beside, is_last, y);
    }
    sums.add(now, y);
    return {};
  }
};

}  // namespace

Result<std::vector<RepairedLayer>> repair(const Coupling& coupling, const Coupling::Units& removed, Graph& cut,
                                          const data::Split& split, const RepairOptions& options) {
  const Graph& graph = coupling.graph();
  const std::vector<bool> mask = coupling.mask_of(removed);
  std::vector<Layer> layers;
  for (const Layer& layer : reading_layers(coupling)) {
    const auto kept = coupling.kept(layer.weight, input_axis(layer), mask);
    if (static_cast<std::int64_t>(kept.size()) < graph.value(layer.weight).constant->shape()[input_axis(layer)])
      layers.push_back(layer);
  }
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
    const auto k = static_cast<std::size_t>(fit.after.reduction);
    RowSums sums(k, fit.target.intercept.size()), held_out(k, fit.target.intercept.size());
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_held = count > 1 && (i + 1) % std::min(options.hold_out_every, count) == 0;
      CTK_CHECK(fit.add(coupling, cut, whole, part, i, is_held ? held_out : sums));
    }
    const RowSums& judge = held_out.rows() > 0 ? held_out : sums;
    RepairedLayer line{graph.address(fit.before.node), judge.error_of(fit.plain), 0, false};
    line.error_after = line.error_before;
    if (const auto map = sums.solve(fit.plain.weights, options.ridge, can_have_bias(cut, fit.after))) {
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
    for (std::size_t i = 0; i < count; ++i) {
      one.add(rows_of_input(graph, layer, whole.value(i, layer.input)), {});
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
    const auto map = part.solve(plain.weights, ridge, can_have_bias(cut, after));
    if (map && part.error_of(*map) < part.error_of(plain)) set_map(cut, after, *map);
  }
}

}  // namespace ctk::pruning
