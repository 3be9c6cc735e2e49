// Layers that read the channels of a group: where those lie among the columns of their weights.
#pragma once

#include <set>
#include <vector>

#include "compress/prune/least_squares.h"
#include "graph/coupling/coupling.h"
#include "graph/layer.h"

namespace ctk::pruning {

// Products and convolutions without groups whose float weight they alone read.
bool can_refit(const graph::Graph& graph, const graph::Layer& layer);
// Layers of the float network that sum over channels of a group that can be cut and can be refitted, in graph order.
std::vector<graph::Layer> reading_layers(const graph::Coupling& coupling);
// The dimension of the weight that runs over the input's channels.
std::size_t input_axis(const graph::Layer& layer);
// Columns [reduction] of the weight's rows that belong to these channels of the input.
std::vector<std::size_t> columns_of(const graph::Coupling& coupling, const graph::Layer& layer,
                                    const std::vector<std::int64_t>& channels);
// Weight [n, k] and bias (zeros when there is none) of a layer of any graph.
LinearMap map_of(const graph::Graph& graph, const graph::Layer& layer);
// Rows of a map.
LinearMap rows_of(const LinearMap& map, const std::vector<std::int64_t>& rows);
// Whether the layer has a bias, one number a channel, that it alone reads. None is added: formats that know a layer
// without one could not hold it.
bool has_own_bias(const graph::Graph& graph, const graph::Layer& layer);
// Gives the layer these numbers; the intercept where it has a bias of its own.
void set_map(graph::Graph& graph, const graph::Layer& layer, const LinearMap& map);

}  // namespace ctk::pruning
