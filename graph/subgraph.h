// Part of a graph as a graph of its own, so that work on one layer runs what lies around it and no more.
#pragma once

#include <vector>

#include "graph/shapes.h"

namespace ctk::graph {

struct Subgraph {
  Graph graph;                   // values and nodes keep their names
  std::vector<ValueId> inputs;   // of the source graph, in the order of graph.inputs()
  std::vector<ValueId> outputs;  // of the source graph, in the order of graph.outputs()
};

// Nodes order()[first, last). Its inputs are what they read and do not make, but for constants, which are shared; its
// outputs what they make and later nodes, the graph's outputs or `wanted` need. `infos` (infer_shapes() of the source)
// says which inputs are known before any run, such as shapes that flow through the graph: they become constants.
// Errors: internal (a range outside the order).
Result<Subgraph> extract(const Graph& graph, std::size_t first, std::size_t last,
                         const std::vector<InferredValue>& infos, const std::vector<ValueId>& wanted = {});

// The nodes that make `to` of `from` and of what else they need, back to the graph's inputs: those become inputs where
// something does not go through `from`. Outputs are `to`, in that order. Everything else as above.
Result<Subgraph> extract_between(const Graph& graph, const std::vector<ValueId>& from, const std::vector<ValueId>& to,
                                 const std::vector<InferredValue>& infos);

}  // namespace ctk::graph
