#include "compress/size.h"

#include <algorithm>

#include "export/bundle.h"
#include "export/formats.h"

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

}  // namespace ctk::pipeline
