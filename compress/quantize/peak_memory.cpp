// Follows layer_inputs, gptq and the writing of the coded network: what each holds while it is at its largest, summed
// over what lives together. Rows n, columns K of a layer; f32 throughout.
//   moments        H, its cross moment, both again for samples held out: 4 K^2; six strips of 384 K as rows come in
//   moved target   H + damping and its factor: 2 K^2; weight, rows, target, two products: 5 n K; codes n K / 4
//   rounding       the same, half a K^2 of packed corrections; weight, rows, target: 3 n K; codes n K / 2
//   descent        H + damping and its packed copy: 2 K^2; 3 n K; codes n K / 2
//   errors         5 n K; codes n K / 2
// Codes lie in files and are let go; their scales are held by the outcome and by the graph, 8 bytes a group.
#include "compress/quantize/peak_memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "compress/quantize/stream.h"
#include "graph/floats.h"
#include "graph/shapes.h"

namespace ctk::quantization {
namespace {

using graph::Graph;
using graph::Layer;
using graph::ValueId;

constexpr std::size_t kProgram = std::size_t{24} << 20;  // code, libraries, tables, graph, threads: measured
constexpr std::size_t kChunk = 384;                      // rows that a moment gathers
constexpr std::size_t kPart = std::size_t{256} << 20;    // StreamOptions::part_bytes

std::size_t scale_count(const Layer& layer, const QuantScheme& scheme) {
  const auto rows = static_cast<std::size_t>(layer.channels);
  if (scheme.granularity != Granularity::per_group) return rows;
  const auto size = static_cast<std::size_t>(scheme.group_size);
  return rows * ((static_cast<std::size_t>(layer.reduction) + size - 1) / size);
}

// Constants that are memory of our own.
std::size_t constant_bytes(const Graph& graph) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const graph::Value& value = graph.value(ValueId{static_cast<std::uint32_t>(i)});
    if (!value.is_removed && value.constant && !graph::is_narrow(value)) bytes += value.constant->bytes();
  }
  return bytes;
}

// Bytes of values made before `place` and read from it on, of a sample with these shapes.
std::size_t crossing_bytes(const Graph& graph, const std::vector<graph::InferredValue>& infos, std::size_t place) {
  std::set<ValueId> read;
  std::set<graph::NodeId> before(graph.order().begin(), graph.order().begin() + static_cast<std::ptrdiff_t>(place));
  for (std::size_t i = place; i < graph.order().size(); ++i) {
    for (ValueId id : graph.node(graph.order()[i]).inputs) read.insert(id);
  }
  std::size_t bytes = 0;
  for (ValueId id : read) {
    if (!id.is_valid() || graph.value(id).is_constant() || !infos[id.index].known || infos[id.index].info.constant)
      continue;
    const graph::NodeId producer = graph.value(id).producer;
    if (producer.is_valid() && !before.contains(producer)) continue;
    bytes += byte_size(infos[id.index].info.dtype, elements(infos[id.index].info.shape));
  }
  return bytes;
}

std::size_t work_bytes(std::size_t n, std::size_t k) {
  const std::size_t nk = 4 * n * k, kk = 4 * k * k;
  const std::size_t target = 2 * kk + 5 * nk + nk / 4 + 8 * kChunk * k;
  const std::size_t rounding = 2 * kk + kk / 2 + 3 * nk + nk / 2;
  const std::size_t descent = 2 * kk + 3 * nk + nk / 2;
  return std::max({target, rounding, descent, 5 * nk + nk / 2});
}

}  // namespace

Result<PeakMemory> predict_peak(const Graph& graph, const SchemeMap& schemes,
                                const std::vector<std::vector<Shape>>& samples, std::size_t values_in_memory) {
  std::map<std::vector<Shape>, std::size_t> counts;
  for (const std::vector<Shape>& shapes : samples) ++counts[shapes];
  std::map<std::vector<Shape>, std::vector<graph::InferredValue>> infos;
  for (const auto& [shapes, count] : counts) {
    CTK_TRY(infos[shapes], graph::infer_shapes(graph, shapes));
  }
  const std::size_t base = kProgram + constant_bytes(graph);
  const bool holds_out = samples.size() > 1;
  PeakMemory peak;
  std::size_t scales = 0, packed = 0;  // packed: float weights since the last place where the walk stood
  std::set<ValueId> stood;             // values whose readers were gathered
  for (std::size_t place = 0; place < graph.order().size(); ++place) {
    const auto layer = graph::layer_of(graph, graph.order()[place]);
    if (!layer) continue;
    const auto n = static_cast<std::size_t>(layer->channels), k = static_cast<std::size_t>(layer->reduction);
    const std::string address = graph.address(layer->node);
    const auto scheme = schemes.find(address);
    if (scheme != schemes.end() && has_rows(graph, *layer)) {
      std::size_t values = 0;
      for (const auto& [shapes, count] : counts) values += 2 * count * crossing_bytes(graph, infos.at(shapes), place);
      values = std::min(values, values_in_memory);
      if (stood.insert(layer->input).second) packed = 0;
      const std::size_t moments = (holds_out ? 4 : 2) * 4 * k * k + (holds_out ? 6 : 3) * 4 * kChunk * k;
      const std::size_t work = work_bytes(n, k);
      const std::size_t bytes = base + scales + values + moments + work;
      if (bytes > peak.bytes) peak = {bytes, address, values, moments, work};
      scales += 8 * scale_count(*layer, scheme->second);
    }
    packed = std::min(packed + 4 * n * k, kPart);
    const std::size_t running = base + scales + std::min(peak.values, values_in_memory) + packed + 4 * n * k;
    if (running > peak.bytes) peak = {running, address, peak.values, 0, packed};
  }
  // The coded network as a file in memory.
  std::size_t file = 0;
  std::set<ValueId> coded;
  for (const Layer& layer : graph::layers_of(graph)) {
    const auto scheme = schemes.find(graph.address(layer.node));
    if (scheme == schemes.end() || !coded.insert(layer.weight).second) continue;
    file += (static_cast<std::size_t>(layer.channels * layer.reduction) * scheme->second.weight_bits + 7) / 8 +
            2 * scale_count(layer, scheme->second);
  }
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const ValueId id{static_cast<std::uint32_t>(i)};
    const graph::Value& value = graph.value(id);
    if (value.is_removed || !value.constant || coded.contains(id)) continue;
    file += value.constant->bytes();
  }
  const std::size_t writing = base + scales + scales / 2 + file;
  if (writing > peak.bytes) peak = {writing, "", 0, 0, file};
  return peak;
}

}  // namespace ctk::quantization
