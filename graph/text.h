// The text form of a graph: prints, parses, diffs.
//
// One line an item, in this order; blank lines and lines that start with '#' are skipped.
//
//   graph "resnet20" ir 8 opset 17                     name, IR version, opset of the default domain
//   opset "com.microsoft" 1                            another domain
//   meta "author" "someone"                            metadata, in order
//   note "default of input W was frozen"               reader note
//   in %x: f32 [N,3,32,32] q8(0.0186, 114)             graph input
//   const %b: f32 [2] = {1, -0.5}                      constant of at most 8 elements
//   const %w: f32 [16,3,3,3] = @4096                   constant whose bytes the sink keeps under "4096"
//   const %h: f32 [16,48] = bf16 [16,48] @6144         floats that are held in 16 bits (graph/floats.h)
//   const %v: f32 [16,3,3,3] = #93ab10de77ff0012       constant printed without its bytes, by hash
//   const %c: f32 [16,3,3,3] = quant(w8a8_c, axis 0, groups 1, "rtn") i8 [16,3,3,3] @8192 scales f32 [16] @9000
//   value %d: f32                                      a value without producer that is neither of the above
//   %y: f32 [N,16,32,32] q8(0.02, 0) = Conv(%x, %c, %b) {pads=[1,1,1,1]} scheme w8a8_c @conv1
//   %z: f32 = Relu(%y) into %y @relu1                  absorbed by the node that produces %y
//   %p: f32, _ = com.acme::Top(%z, _, %x) {k=3} captures(%w) @top
//   out %p                                             graph output; "in %w" alone makes a constant an input too
//
//   word      a run of letters, digits and _ . / - + (in names also ':' but not last), or a quoted string
//   string    "..." with \" \\ \n \t \r \xHH; bytes that are no UTF-8 and control characters are \xHH
//   value     %word; "_" is an omitted input or output
//   type      dtype [dims]? q8(scale, zero_point)?; a dim is 3, ? (unknown), N (symbol), N=3 (both)
//   tensor    dtype [sizes] data; on a const line dtype and sizes are left out where the declared ones hold
//   data      {elements} | @reference | #hash | none (an undefined tensor); string tensors are {}
//   node      outputs = domain::type(inputs) {name=attribute, ...} captures(...) into TARGET scheme S @name
//             TARGET is a value of the absorbing node, or #k, the k-th node line from 0, when that has no outputs
//   attribute 3 | 0.5 | "text" | [1,2] | [1.0,2.0] | ["a","b"] | ints[] floats[] strings[] when empty | tensor |
//             opaque(hex digits) | opaque(@reference, byte count)
//   float     shortest decimal that reads back to the same bits, inf, -inf, nan, or nan:BITS (hexadecimal) for
//             another NaN than the default one; attribute floats always carry a '.', an exponent or a letter
//
// print_graph(parse_graph(print_graph(g))) gives the same text. Ids are not in the text: parsing compacts them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace ctk::graph {

// Where the bytes of large constants go while printing, and where they come from while parsing. A reference is an
// opaque word (letters, digits and _ . / - +) that the sink chooses (an offset, a hash).
class ConstantSink {
 public:
  virtual ~ConstantSink() = default;
  virtual std::string store(const Tensor& tensor) = 0;
};
class ConstantSource {
 public:
  virtual ~ConstantSource() = default;
  // The reference comes from the text: check it before use.
  virtual Result<Tensor> load(std::string_view reference, DType dtype, const Shape& shape) = 0;
};

// Every fact of the graph: inputs, outputs, constants, nodes, attributes, notes, opsets, metadata, names.
// With a null sink, constants of more than 8 elements print as "#<64-bit hash>".
std::string print_graph(const Graph& graph, ConstantSink* sink = nullptr);
// Inverse of print_graph; the graph that comes back has passed verify(). With a null source, constants printed as
// hashes come back as zeros of the right shape (large ones take no memory), and references are an error; with a source,
// hashes are an error. Never trusts the text: errors name line and column. Errors: input.
Result<Graph> parse_graph(std::string_view text, ConstantSource* source = nullptr);
// Line differences by node and value name: "- ..." / "+ ..." lines, empty when equal. Unnamed nodes go by first output.
// The order of nodes and constants does not count, that of inputs and outputs does.
std::vector<std::string> diff_graphs(const Graph& before, const Graph& after);
// The same for two text forms as print_graph() writes them without a sink; constants are compared by their hashes.
// Errors: input (a text does not parse: "before" or "after", line and column).
Result<std::vector<std::string>> diff_texts(std::string_view before, std::string_view after);
// Whether a file's bytes start as the text form does: comments and blank lines, then "graph".
bool is_graph_text(std::string_view bytes);

}  // namespace ctk::graph
