// Which channels of a network have to go together, and cutting them out of it.
//
// Every operator ties the channels of its inputs to those of its outputs (rules.h). What a layer makes are channels;
// all that is tied to one of them, along every weight, is a unit; units that run along the same weights are a group. A
// group cannot be cut when a graph output, an unknown operator, a reduction... sees its channels: it says which.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/coupling/ties.h"
#include "graph/graph.h"

namespace ctk::graph {

// A dimension of a constant along which a group runs, and who reads it as what.
struct CoupledAxis {
  ValueId value;
  std::size_t axis = 0;
  std::vector<AxisClaim> readers;
};

struct CoupledUnit {
  Element element = 0;                             // stands for its set
  std::vector<std::vector<std::int64_t>> indices;  // [axes of the group], ascending
};

struct CoupledGroup {
  std::string name;                // address of the first layer that makes its channels, "#2" for another of the same
  std::vector<CoupledAxis> axes;   // by value, then by axis
  std::vector<CoupledUnit> units;  // by their place along the first layer
  std::string reason;              // why it cannot be cut; empty when it can
  std::string statistics;          // a normalization takes its statistics over the channels, and would over fewer
};

class Coupling {
 public:
  // `input_shapes` of one sample; no channel depends on them, sizes behind them do. The graph must outlive the object
  // and stay as it is. Groups that can be cut are tried: one unit goes, and every shape must be as foreseen.
  // Errors: those of infer_shapes() but for unknown operators.
  static Result<Coupling> find(const Graph& graph, const std::vector<Shape>& input_shapes);

  // In the order of the layers that make them.
  const std::vector<CoupledGroup>& groups() const { return groups_; }
  const Graph& graph() const { return ties_->graph(); }
  // Units of each group, by their number: [group] -> ascending.
  using Units = std::vector<std::vector<std::size_t>>;
  // By element, whether it goes with these units.
  std::vector<bool> mask_of(const Units& removed) const;
  // The shape a value has without the elements that a mask names, and the indices of a dimension that stay.
  Shape shape_without(ValueId value, const std::vector<bool>& mask) const;
  std::vector<std::int64_t> kept(ValueId value, std::size_t dim, const std::vector<bool>& mask) const;

  // The network without some units. Values, nodes and their ids stay; weights, attributes and sizes written in the
  // model follow. Errors: input (nothing of a dimension would be left: names the value; a shape that came out
  // otherwise: names the value and both).
  Result<Graph> cut(const Units& removed) const;

 private:
  Coupling() = default;
  void follow();
  void block_unclaimed();
  void collect_groups();
  void try_groups();

  std::shared_ptr<Ties> ties_;
  std::vector<Shape> input_shapes_;
  std::vector<CoupledGroup> groups_;
};

}  // namespace ctk::graph
