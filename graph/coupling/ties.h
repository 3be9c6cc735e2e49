// What the coupling rule of an operator works with: the channels of its inputs, and how they become those of its
// outputs.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/coupling/elements.h"
#include "graph/graph.h"
#include "graph/shapes.h"

namespace ctk::graph {

// What a dimension of a constant is to a node that reads it.
enum class AxisRole : std::uint8_t {
  produces,     // the channels of the node's output
  consumes,     // the channels of its input, summed over
  accompanies,  // one number for each channel: bias, scale, operand of an Add
};

struct AxisClaim {
  NodeId node;
  ValueId value;
  std::size_t axis = 0;
  AxisRole role = AxisRole::accompanies;
};

// A dimension of a value, as one operand of a join.
struct DimOf {
  ValueId value;
  std::size_t dim = 0;
  AxisRole role = AxisRole::accompanies;  // for constants
};

// The name of a value or node as messages show it.
std::string quoted(const std::string& name);

class Ties {
 public:
  Ties(const Graph& graph, std::vector<InferredValue> infos);

  // --- the node whose rule runs
  void begin(NodeId id) { node_ = id; }
  const Node& node() const { return graph_.node(node_); }
  std::string place() const;               // `"layer1.conv" (Conv)`
  ValueId input(std::size_t index) const;  // invalid when omitted
  bool has_input(std::size_t index) const { return input(index).is_valid(); }
  ValueId output(std::size_t index = 0) const { return node().outputs[index]; }
  const Shape& shape(ValueId id) const { return infos_[id.index].info.shape; }
  bool is_known(ValueId id) const { return infos_[id.index].known; }
  bool is_constant(ValueId id) const { return graph_.value(id).is_constant(); }
  // Integers known before any run, by a constant or by inference; nothing otherwise.
  std::optional<std::vector<std::int64_t>> integers(std::size_t input) const;
  // The attribute as a dimension of a value of `rank`: negative counts from the end.
  static std::size_t axis_of(std::int64_t axis, std::size_t rank) {
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
  }

  // --- channels
  // As things stand: empty for a dimension that keeps its size, and for one of a constant that nobody has claimed.
  const Tags& tags(ValueId id, std::size_t dim) const;
  // Of a constant: makes them when they are not there, and notes who reads them as what.
  Tags claim(ValueId constant, std::size_t axis, AxisRole role);
  void set(ValueId id, std::size_t dim, Tags tags);
  // Index by index one channel. An empty side stands for a dimension that keeps its size: the other is blocked.
  void unite(const Tags& a, const Tags& b);
  // All operands are the same channels, but for those of size 1, which are repeated. Constants are claimed when some
  // operand has channels. Returns the channels, empty when the dimension keeps its size.
  Tags join(const std::vector<DimOf>& operands);
  void block(const Tags& tags, const std::string& reason);
  void note_statistics(const Tags& tags, const std::string& text);
  // Every input's channels must stay.
  void block_inputs(const std::string& reason);
  Element fresh() { return elements_.add(); }
  void unite(Element a, Element b) { elements_.unite(a, b); }
  bool is_one(Element a, Element b) const { return elements_.find(a) == elements_.find(b); }

  // --- results
  const Graph& graph() const { return graph_; }
  const Elements& elements() const { return elements_; }
  Elements& elements() { return elements_; }
  const std::vector<AxisClaim>& claims() const { return claims_; }
  // Axes of constants that have channels: elements in order of the index.
  const std::map<std::pair<ValueId, std::size_t>, Tags>& constant_axes() const { return constant_axes_; }

 private:
  const Graph& graph_;
  std::vector<InferredValue> infos_;
  NodeId node_;
  Elements elements_;
  std::vector<std::vector<Tags>> tags_;  // [value][dimension], activations
  std::map<std::pair<ValueId, std::size_t>, Tags> constant_axes_;
  std::vector<AxisClaim> claims_;
};

}  // namespace ctk::graph
