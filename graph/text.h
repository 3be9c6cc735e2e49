// The text form of a graph: prints, parses, diffs. What it looks like is documented at the top of text.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace ctk::graph {

// Where the bytes of large constants go while printing, and where they come from while parsing. A reference is an opaque
// word without spaces that the sink chooses (an offset, a hash).
class ConstantSink {
 public:
  virtual ~ConstantSink() = default;
  virtual std::string store(const Tensor& tensor) = 0;
};
class ConstantSource {
 public:
  virtual ~ConstantSource() = default;
  virtual Result<Tensor> load(std::string_view reference, DType dtype, const Shape& shape) = 0;
};

// Every fact of the graph: inputs, outputs, constants, nodes, attributes, notes, opsets, metadata, names.
// With a null sink, constants of more than 8 elements print as "#<64-bit hash>".
std::string print_graph(const Graph& graph, ConstantSink* sink = nullptr);
// Inverse of print_graph. With a null source, constants printed as hashes come back as zeros of the right shape.
// Never trusts the text: errors name line and column. Errors: input.
Result<Graph> parse_graph(std::string_view text, ConstantSource* source = nullptr);
// Line differences by node and value name: "- ..." / "+ ..." lines, empty when equal. Unnamed nodes go by first output.
std::vector<std::string> diff_graphs(const Graph& before, const Graph& after);

}  // namespace ctk::graph
