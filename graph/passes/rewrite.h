// What the passes share: who reads a value, and how a node is taken out without anybody outside noticing.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "graph/shapes.h"

namespace ctk::graph {

// True when an opaque subgraph reads the value by its name.
bool is_captured(const Graph& graph, ValueId id);
// The node that alone reads the value, in one place; none when it is a graph output, or read by a subgraph.
std::optional<NodeId> only_reader(const Graph& graph, ValueId id);
// Plain contents of a constant (not codes); null when omitted or not known.
const Tensor* constant_of(const Graph& graph, const Node& node, std::size_t input);
// A constant list of integers; nothing when it is omitted, unknown or of another type.
std::optional<std::vector<std::int64_t>> integers_of(const Graph& graph, const Node& node, std::size_t input);
// True for an omitted input.
bool is_omitted(const Node& node, std::size_t input);

// Can the readers of the node's first output read `from` instead, with the node gone? False when another output is in
// use, when a name that is read by a subgraph would be lost, when a graph output would have to be a graph input, a
// constant or another output, or when the two values are stored differently (activation_quant).
bool can_bypass(const Graph& graph, NodeId node, ValueId from);
// Does it. A graph output keeps its name: the producer of `from` then writes it directly, under its old address.
// can_bypass() must hold.
void bypass(Graph& graph, NodeId node, ValueId from);

// Types and shapes with each unknown dimension bound to a stand-in: 2 for the batch, `other` elsewhere. With `other`
// past 1, two shapes that agree here agree in every run. Nothing when a rule fails.
std::optional<std::vector<InferredValue>> try_infer(const Graph& graph, std::int64_t other = 64);
// True when every graph input has a fully declared shape, so that inferred shapes hold for every run.
bool has_static_inputs(const Graph& graph);

Result<int> fold_constants(Graph& graph);
Result<int> eliminate_identity(Graph& graph);
Result<int> fold_batchnorm(Graph& graph);
Result<int> fold_pad(Graph& graph);
Result<int> absorb_activations(Graph& graph);
Result<int> absorb_residuals(Graph& graph);
Result<int> eliminate_dead(Graph& graph);

}  // namespace ctk::graph
