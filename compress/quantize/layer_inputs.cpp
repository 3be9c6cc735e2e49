#include "compress/quantize/layer_inputs.h"

#include <algorithm>
#include <set>

#include "compress/quantize/rank_bytes.h"
#include "compress/quantize/stream.h"
#include "core/printable.h"

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

bool is_held_out(std::size_t sample, std::size_t count, std::size_t every) {
  if (count < 2 || every == 0) return false;
  return count < every ? sample + 1 == count : (sample + 1) % every == 0;
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

// What one sample feeds a layer, in the float network and in the coded one.
struct Fed {
  Tensor original, coded;
};

// Of samples [first, first + size), one of each rank.
Result<std::vector<Fed>> fed_by(const Stream& before, const Stream& after, ValueId id, std::size_t first,
                                std::size_t count, Ranks& ranks) {
  const auto size = static_cast<std::size_t>(ranks.size());
  const std::size_t place = first / size;  // among this rank's samples
  const bool is_there = first + static_cast<std::size_t>(ranks.rank()) < count;
  std::vector<Tensor> mine;
  if (is_there) {
    CTK_TRY(Tensor floats, before.read(place, id));
    CTK_TRY(Tensor fed, after.read(place, id));
    mine = {std::move(floats), std::move(fed)};
  }
  if (ranks.is_alone()) return std::vector<Fed>{{mine[0], mine[1]}};
  CTK_TRY(const std::vector<std::string> parts, ranks.gather("inputs of a layer", encode_tensors(mine)));
  std::vector<Fed> fed;
  for (std::size_t rank = 0; rank < size && first + rank < count; ++rank) {
    CTK_TRY(const std::vector<Tensor> pair, decode_tensors(parts[rank]));
    if (pair.size() != 2) return internal_error("quantize: expected two inputs of a layer from every rank");
    fed.push_back({pair[0], pair[1]});
  }
  return fed;
}

}  // namespace

void LayerInputs::add_held_out() {
  coded.add_moment(held_out);
  cross.add_moment(held_out_cross);
  held_out = calibrate::Moment(coded.columns());
  held_out_cross = calibrate::CrossMoment(coded.columns());
}

Status walk_layers(const Graph& original, Graph& coded, const std::vector<std::string>& wanted,
                   const data::Split& split, const WalkOptions& options, const CodeLayers& code) {
  const std::vector<Group> groups = groups_in_order(original, wanted);
  const std::size_t count = split.count();
  StreamOptions streaming;
  streaming.store = std::make_shared<ValueStore>(options.values_in_memory, options.folder);
  Stream before(original, streaming), after(coded, streaming);
  Ranks& ranks = *options.ranks;
  const auto size = static_cast<std::size_t>(ranks.size());
  for (std::size_t i = static_cast<std::size_t>(ranks.rank()); i < count; i += size) {
    CTK_TRY(const data::Batch sample, split.read(i, i + 1));
    CTK_CHECK(before.begin(sample.inputs));
    CTK_CHECK(after.begin(sample.inputs));
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const std::string address = printable(original.address(group.layers[0].node));
    CTK_CHECK(before.advance(group.place));
    CTK_CHECK(after.advance(group.place));
    if (options.restore && options.restore(coded, group.layers)) {
      if (options.progress) options.progress(g + 1, groups.size());
      continue;
    }
    LayerInputs inputs(static_cast<std::size_t>(group.layers[0].reduction));
    inputs.share(ranks);
    for (std::size_t first = 0; first < count; first += size) {
      CTK_TRY(const std::vector<Fed> fed, fed_by(before, after, group.input, first, count, ranks));
      for (std::size_t i = first; i < first + fed.size(); ++i) {
        const bool hold_out = is_held_out(i, count, options.hold_out_every);
        const Fed& one = fed[i - first];
        auto added = add_rows(original, group.layers[0], one.original, one.coded, hold_out, inputs);
        if (!added)
          return std::move(added).error().with_context(address + ", " + split.source->where(split.indices[i]));
      }
    }
    CTK_CHECK(inputs.gather(ranks));
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
template std::vector<float> from_rows(const Layer&, std::span<const float>);

}  // namespace ctk::quantization
