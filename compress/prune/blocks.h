// Whole blocks of a network: which ones can go, how little each does, and taking them out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/splits.h"
#include "graph/blocks.h"
#include "graph/graph.h"

namespace ctk::pruning {

// Nodes between two values to which the network narrows, of one shape, of which the first is also added to what the
// nodes make of it: without the block the second is the first. A block of attention has the one behind it with it, so
// that a decoder's layer is one block.
struct WholeBlock {
  std::string name;  // address of its first layer
  graph::Cut from, to;
};

// In graph order. `input_shapes`: one sample. Errors: those of infer_shapes().
Result<std::vector<WholeBlock>> whole_blocks(const graph::Graph& graph, const std::vector<Shape>& input_shapes);

// How much each block changes what goes through: 1 - cosine of its two values, mean over samples.
// Source: Men et al., ShortGPT, 2024 (block influence). Differs: a sample's values are one vector.
// Errors: those of running the network on the split, interrupted.
Result<std::vector<double>> influence_of(const graph::Graph& graph, const std::vector<WholeBlock>& blocks,
                                         const data::Split& split, std::size_t most_samples);

// Readers of what the block gave read what went into it; its nodes go.
void remove_block(graph::Graph& graph, const WholeBlock& block);

struct RemovedBlock {
  std::string name;
  double influence = 0;  // when it went
};
// Takes out the block of least influence, `count` times. Errors: config (fewer blocks can go), those above.
Result<std::vector<RemovedBlock>> remove_least(graph::Graph& graph, std::int64_t count,
                                               const std::vector<Shape>& input_shapes, const data::Split& split,
                                               std::size_t most_samples = 64);

}  // namespace ctk::pruning
