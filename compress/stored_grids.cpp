#include "compress/stored_grids.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "compress/quantize/layer_inputs.h"
#include "compress/quantize/stored_grid.h"
#include "compress/quantize/stream.h"
#include "compress/summary.h"
#include "core/printable.h"
#include "graph/floats.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

using quantization::StoredGrid;

constexpr std::size_t kRowsFirst = 4;  // looked at before the whole matrix is

// Nothing for nearly all weights, by their first rows.
std::optional<StoredGrid> grid_of(const graph::Graph& graph, const graph::Layer& layer) {
  const graph::Value& value = graph.value(layer.weight);
  if (!value.constant || !quantization::is_product(graph, layer)) return std::nullopt;
  const auto n = static_cast<std::size_t>(layer.channels), k = static_cast<std::size_t>(layer.reduction);
  if (graph::is_narrow(value) && layer.channel_axis == 0 && n >= kRowsFirst) {
    std::vector<float> first(kRowsFirst * k);
    for (std::size_t r = 0; r < kRowsFirst; ++r) graph::widen_row(*value.constant, r, first.data() + r * k);
    if (first.size() >= 256 && !quantization::find_stored_grid(first, kRowsFirst, k)) return std::nullopt;
  }
  const Tensor floats = graph::floats_of(value);
  if (layer.channel_axis == 0) return quantization::find_stored_grid(floats.values<float>(), n, k);
  return quantization::find_stored_grid(quantization::weight_rows(layer, floats), n, k);
}

bool holds(const graph::Graph& graph, const graph::Layer& layer, const QuantScheme& scheme) {
  if (!quantization::infeasible_reason(graph, layer, scheme).empty()) return false;
  quantization::WeightRequest request;
  request.weight = graph::floats_of(graph.value(layer.weight));
  request.scheme = scheme;
  request.channel_axis = layer.channel_axis;
  request.group_count = layer.group_count;
  return quantization::keep_stored_grid(request).has_value();
}

// Schemes of the grid's own form, and of the next wider ones: what could hold it.
std::string holder_of(const graph::Graph& graph, const graph::Layer& layer, const StoredGrid& grid) {
  for (int bits = std::max(2, grid.bits); bits <= std::min(8, grid.bits + 1); ++bits) {
    if (bits == 7) continue;
    for (bool is_affine : {false, true}) {
      QuantScheme scheme;
      scheme.weight_bits = bits;
      scheme.activation_bits = 16;
      scheme.granularity = grid.group_size == 0 ? Granularity::per_channel : Granularity::per_group;
      scheme.group_size = static_cast<int>(grid.group_size);
      scheme.is_affine = is_affine;
      if (holds(graph, layer, scheme)) return to_string(scheme);
    }
  }
  return "";
}

std::string describe(const StoredGrid& grid) {
  return std::to_string(grid.bits) + " bits " +
         (grid.group_size == 0 ? "a channel" : "in groups of " + std::to_string(grid.group_size)) +
         (grid.has_zero ? "" : " with minima that are no multiple of the step");
}

// What becomes of the layers under the schemes they may get.
std::string outlook(const Session& session, const graph::Layer& layer, const StoredGrid& grid) {
  std::string kept, rounded;
  for (const QuantScheme& scheme : allowed_schemes(session.config)) {
    if (!scheme.is_integer_weight()) continue;
    std::string& list = holds(session.model.graph, layer, scheme) ? kept : rounded;
    list += (list.empty() ? "" : ", ") + to_string(scheme);
  }
  std::string text;
  if (!kept.empty()) text += "; " + kept + " holds that grid, so their codes are kept without loss";
  if (rounded.empty()) return text;
  text += "; " + rounded + " cannot hold that grid and rounds them a second time";
  if (!kept.empty()) return text;
  if (!grid.has_zero) {
    return text +
           ": zero points here are integers, so none of our schemes holds such minima. Leave these layers float " +
           "by `ignore`, or use the file as it is";
  }
  const std::string holder = holder_of(session.model.graph, layer, grid);
  return text + (holder.empty() ? ". Leave these layers float by `ignore`, or use the file as it is"
                                : ". Use " + holder + ", which holds it");
}

}  // namespace

void tell_of_stored_grids(Session& session) {
  if (!session.config.quantize) return;
  const graph::Graph& graph = session.model.graph;
  struct Kind {
    StoredGrid grid;
    graph::Layer first;
    std::size_t count = 0;
  };
  std::map<std::tuple<int, std::size_t, bool>, Kind> kinds;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    const auto grid = grid_of(graph, layer);
    if (!grid) continue;
    Kind& kind = kinds[{grid->bits, grid->group_size, grid->has_zero}];
    if (kind.count++ == 0) kind = {*grid, layer, 1};
  }
  for (const auto& [key, kind] : kinds) {
    session.warn("stored_grid", std::to_string(kind.count) + (kind.count == 1 ? " layer holds" : " layers hold") +
                                    " weights that were rounded before, to " + describe(kind.grid) +
                                    " (the first: " + printable(graph.address(kind.first.node)) + ")" +
                                    outlook(session, kind.first, kind.grid));
  }
}

}  // namespace ctk::pipeline
