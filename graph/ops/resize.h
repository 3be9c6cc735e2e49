// Resize as tables: which input positions an output position reads along each dimension, and with which weights. The
// operator's own evaluation and the runtime's kernel read the same ones.
#pragma once

#include <vector>

#include "graph/ops/op.h"

namespace ctk::graph {

// One dimension. An output element is the sum over the taps of all dimensions, the first dimension outermost, each sum
// in double, taps in order; a tap of weight 0 is not read.
struct ResizeTable {
  bool is_resized = false;       // else every position reads itself
  int taps = 1;                  // 1 (nearest, or not resized), 2 (linear) or 4 (cubic)
  std::vector<std::int64_t> at;  // [output size, taps], in the input
  std::vector<double> weight;    // [output size, taps]
};

struct ResizeTables {
  bool is_nearest = false;  // elements are moved, of any type; else floats are summed
  std::vector<ResizeTable> dimensions;
};

// Inputs as evaluate() gets them; of the data only type and shape are read. Errors: input.
Result<ResizeTables> resize_tables(const Node& node, std::span<const TensorView> inputs);

}  // namespace ctk::graph
