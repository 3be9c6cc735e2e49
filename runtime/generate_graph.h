// A decoder's graph made ready to read a text on. Internal to runtime/generate.
#pragma once

#include "graph/graph.h"

namespace ctk::runtime {

struct ReadingGraph {
  std::size_t vocabulary = 0;
  std::size_t positions = 0;  // rows of the rotary tables: positions the model knows
};

// Positions become the second input, `positions` i64 [1, sequence], and only the last token's logits are computed.
// Errors: input (not a decoder as graph/hf/decoder.h builds them: expected, found).
Result<ReadingGraph> make_reading_graph(graph::Graph& graph);

}  // namespace ctk::runtime
