// File formats: the visible table of what can be written.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace ctk::exporter {

struct OutputFile {
  std::string name;  // below the output folder
  std::string bytes;
};
// What a format makes of a graph: its own file first, then those that go with it.
struct Written {
  std::vector<OutputFile> files;
  std::vector<std::string> notes;  // what the format holds otherwise than the graph does, though as the same numbers
};

struct Format {
  std::string_view name;       // as in the pipeline file
  std::string_view file_name;  // below the output folder
  std::string_view what;
  // All files, whole. `model`: the path the graph was read from, for formats that carry what graphs do not (a
  // tokenizer). Errors: input (a form the format cannot hold; names the layer).
  Result<Written> (*write)(const graph::Graph& graph, const std::string& model);
  std::span<const std::string_view> other_names = {};  // of files that may go with the first
};

std::span<const Format> formats();
Result<const Format*> find_format(std::string_view name);  // errors: config, lists the known

}  // namespace ctk::exporter
