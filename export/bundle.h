// Writes bundles (layout: runtime/bundle.h).
#pragma once

#include <string>

#include "graph/graph.h"

namespace ctk::exporter {

// The whole file. The same graph gives the same bytes.
std::string bundle_of(const graph::Graph& graph);
// Its size without building it.
std::size_t bundle_bytes(const graph::Graph& graph);
Status write_bundle(const graph::Graph& graph, const std::string& path);

}  // namespace ctk::exporter
