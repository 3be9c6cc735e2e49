// Blocks: parts of a network between places where all it knows of a sample is in one value.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace ctk::graph {

// Nodes order()[0, place) have run, and of what they made with some layer's weight only `value` is read later (or is
// the graph's output). Values no layer has a part in, such as tables of positions and masks, and sizes may go along.
struct Cut {
  std::size_t place = 0;
  ValueId value;
};

// All of them, ascending in place; of places that differ only in nodes no layer has a part in, the last.
std::vector<Cut> cuts_of(const Graph& graph);

}  // namespace ctk::graph
