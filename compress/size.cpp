#include "compress/size.h"

#include <algorithm>
#include <set>

#include "export/bundle.h"
#include "export/formats.h"
#include "graph/layer.h"

namespace ctk::pipeline {

std::string budget_format(const PipelineConfig& config) {
  if (!config.exports) return "bundle";
  const auto& names = config.exports->formats;
  if (std::find(names.begin(), names.end(), "bundle") != names.end()) return "bundle";
  for (const std::string& name : names) {
    if (name != "report") return name;
  }
  return "bundle";
}

Result<std::size_t> file_bytes(const graph::Graph& graph, const std::string& format, const std::string& model) {
  if (format == "bundle") return exporter::bundle_bytes(graph);
  CTK_TRY(const exporter::Format* row, exporter::find_format(format));
  CTK_TRY(const exporter::Written written, row->write(graph, model));
  return written.files[0].bytes.size();
}

namespace {

struct WeightSum {
  std::size_t count = 0, bytes = 0;
};

WeightSum sum_of(const graph::Graph& graph) {
  WeightSum sum;
  std::set<graph::ValueId> counted;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    if (!counted.insert(layer.weight).second) continue;
    const graph::Value& weight = graph.value(layer.weight);
    sum.count += weight.quantized ? weight.quantized->codes.size() : weight.constant->size();
    sum.bytes += weight.quantized ? stored_bytes(*weight.quantized) : 4 * weight.constant->size();
  }
  return sum;
}

}  // namespace

std::size_t layer_weights(const graph::Graph& graph) {
  return sum_of(graph).count;
}

double average_bits(const graph::Graph& graph) {
  const WeightSum sum = sum_of(graph);
  return sum.count == 0 ? 0 : 8.0 * static_cast<double>(sum.bytes) / static_cast<double>(sum.count);
}

}  // namespace ctk::pipeline
