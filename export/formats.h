// File formats: the visible table of what can be written.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace ctk::exporter {

struct Format {
  std::string_view name;       // as in the pipeline file
  std::string_view file_name;  // below the output folder
  std::string_view what;
  // The whole file. `model`: the path the graph was read from, for formats that carry what graphs do not (a tokenizer).
  // Errors: input (a form the format cannot hold; names the layer).
  Result<std::string> (*serialize)(const graph::Graph& graph, const std::string& model);
};

std::span<const Format> formats();
Result<const Format*> find_format(std::string_view name);  // errors: config, lists the known

}  // namespace ctk::exporter
