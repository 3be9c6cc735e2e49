// The best correction of a coded weight by a product of two thin matrices, and its place in the graph.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/result.h"
#include "graph/graph.h"
#include "graph/layer.h"

namespace ctk::quantization {

struct LowRank {
  std::size_t rank = 0;
  std::vector<float> up;               // [rows, rank], orthonormal columns
  std::vector<float> down;             // [rank, columns]
  double error_before = 0, error = 0;  // tr(E H E^T), of what is left of E
};

// up * down is the matrix of at most that rank nearest to `error` [rows, columns] where inputs have the second moment
// `hessian` [columns, columns]. Deterministic. rank: at least 1; more than the smaller side counts as that.
LowRank fit_low_rank(std::span<const float> error, std::size_t rows, std::size_t columns,
                     std::span<const float> hessian, std::size_t rank);

// Adds x down^T up^T to the result of a product, as two MatMuls of fp16 weights and an Add; the result keeps its name.
// Beside a convolution of one group they are two: its window for `rank` channels, and a mixture of these at each place.
// The nodes stand at the end: sort() the graph once all layers have theirs.
void add_low_rank(graph::Graph& graph, const graph::Layer& layer, const LowRank& correction);

}  // namespace ctk::quantization
