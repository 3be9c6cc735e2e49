// Shape inference over a whole graph for concrete input shapes.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/ops/op.h"

namespace ctk::graph {

// The concrete input shapes a declared shape allows when every symbol is bound: `batch` for a leading unknown
// dimension, 1 for any other unknown. One entry per graph input.
std::vector<Shape> default_input_shapes(const Graph& graph, std::int64_t batch);

// Checks `shapes` (one per graph input) against the declared ones. Errors: input (input name, expected, found).
Status check_input_shapes(const Graph& graph, std::span<const Shape> shapes);

// ValueInfo per value id (undefined entries for removed values and for values behind unknown operators, marked by
// `known == false`). Contents of small integer and shape-carrying values are followed.
// Errors: input (node address, what its rule said). With allow_unknown, unknown operators only lose what is behind
// them.
struct InferredValue {
  bool known = false;
  ValueInfo info;
};
Result<std::vector<InferredValue>> infer_shapes(const Graph& graph, std::span<const Shape> input_shapes,
                                                bool allow_unknown = false);

}  // namespace ctk::graph
