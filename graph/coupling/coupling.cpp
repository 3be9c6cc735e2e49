#include "graph/coupling/coupling.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "graph/coupling/rules.h"

namespace ctk::graph {
namespace {

// Where a unit lies: indices by axis of a constant.
using Places = std::map<std::pair<ValueId, std::size_t>, std::vector<std::int64_t>>;

// What units of one group share: axes with the number of indices on each, the reason they stay, their statistics.
using Likeness = std::tuple<std::vector<std::tuple<ValueId, std::size_t, std::size_t>>, std::string, std::string>;

bool knows_all(const Ties& ties, const Node& node) {
  const auto is_unknown = [&](ValueId id) { return id.is_valid() && !ties.is_known(id); };
  return std::ranges::none_of(node.inputs, is_unknown) && std::ranges::none_of(node.outputs, is_unknown);
}

// The first layer that makes the group's channels, as a place in the graph's order; order().size() when none does.
std::size_t place_of_maker(const Graph& graph, const CoupledGroup& group, const std::vector<std::size_t>& places) {
  std::size_t first = graph.order().size();
  for (const CoupledAxis& axis : group.axes) {
    for (const AxisClaim& claim : axis.readers) {
      if (claim.role == AxisRole::produces) first = std::min(first, places[claim.node.index]);
    }
  }
  return first;
}

}  // namespace

Result<Coupling> Coupling::find(const Graph& graph, const std::vector<Shape>& input_shapes) {
  CTK_TRY(std::vector<InferredValue> infos, infer_shapes(graph, input_shapes, true));
  Coupling coupling;
  coupling.input_shapes_ = input_shapes;
  coupling.ties_ = std::make_shared<Ties>(graph, std::move(infos));
  coupling.follow();
  coupling.block_unclaimed();
  coupling.collect_groups();
  coupling.try_groups();
  return coupling;
}

void Coupling::follow() {
  Ties& ties = *ties_;
  const Graph& graph = ties.graph();
  for (NodeId id : graph.order()) {
    ties.begin(id);
    const Node& node = graph.node(id);
    if (node.op == Op::unknown || coupling_rule(node.op).tie == nullptr || !node.captured.empty()) {
      ties.block_inputs("is read by " + ties.place());
    } else if (!knows_all(ties, node)) {
      ties.block_inputs("is read by " + ties.place() + ", whose sizes are not known");
    } else {
      coupling_rule(node.op).tie(ties);
    }
  }
  for (ValueId id : graph.outputs()) {
    if (!ties.is_known(id)) continue;
    for (std::size_t d = 0; d < ties.shape(id).size(); ++d) {
      ties.block(ties.tags(id, d), "leaves the network as " + quoted(graph.value(id).name));
    }
  }
}

// A constant that also serves a node which did not speak of the axis must keep it.
void Coupling::block_unclaimed() {
  Ties& ties = *ties_;
  const Graph& graph = ties.graph();
  std::set<std::tuple<NodeId, ValueId, std::size_t>> claimed;
  for (const AxisClaim& claim : ties.claims()) claimed.insert({claim.node, claim.value, claim.axis});
  for (const auto& [place, tags] : ties.constant_axes()) {
    for (NodeId reader : graph.value(place.first).consumers) {
      if (claimed.contains({reader, place.first, place.second})) continue;
      ties.block(tags, "lies in " + quoted(graph.value(place.first).name) + ", which " + quoted(graph.address(reader)) +
                           " reads too");
    }
  }
}

void Coupling::collect_groups() {
  const Ties& ties = *ties_;
  const Graph& graph = ties.graph();
  std::map<Element, Places> units;
  for (const auto& [place, tags] : ties.constant_axes()) {
    for (std::size_t i = 0; i < tags.size(); ++i) {
      units[ties.elements().find(tags[i])][place].push_back(static_cast<std::int64_t>(i));
    }
  }
  std::map<std::pair<ValueId, std::size_t>, std::vector<AxisClaim>> readers;
  for (const AxisClaim& claim : ties.claims()) readers[{claim.value, claim.axis}].push_back(claim);
  std::map<Likeness, std::size_t> known;
  for (auto& [element, places] : units) {
    Likeness likeness;
    for (const auto& [place, indices] : places) {
      std::get<0>(likeness).push_back({place.first, place.second, indices.size()});
    }
    std::get<1>(likeness) = ties.elements().reason(element);
    std::get<2>(likeness) = ties.elements().statistics(element);
    const auto [entry, is_new] = known.try_emplace(likeness, groups_.size());
    if (is_new) {
      CoupledGroup group;
      group.reason = std::get<1>(likeness);
      group.statistics = std::get<2>(likeness);
      for (const auto& [place, indices] : places) group.axes.push_back({place.first, place.second, readers[place]});
      groups_.push_back(std::move(group));
    }
    CoupledUnit unit{element, {}};
    for (auto& [place, indices] : places) unit.indices.push_back(std::move(indices));
    groups_[entry->second].units.push_back(std::move(unit));
  }
  std::vector<std::size_t> places(graph.node_capacity(), 0);
  for (std::size_t i = 0; i < graph.order().size(); ++i) places[graph.order()[i].index] = i;
  std::ranges::stable_sort(groups_, {}, [&](const CoupledGroup& g) { return place_of_maker(graph, g, places); });
  std::map<std::string, int> names;
  for (CoupledGroup& group : groups_) {
    const std::size_t maker = place_of_maker(graph, group, places);
    if (maker == graph.order().size()) {
      group.name = graph.value(group.axes[0].value).name;
      if (group.reason.empty()) group.reason = "is made by no layer";
    } else {
      group.name = graph.address(graph.order()[maker]);
    }
    if (group.reason.empty() && group.units.size() < 2) group.reason = "is one unit, that cannot be parted";
    const int number = ++names[group.name];
    if (number > 1) group.name += "#" + std::to_string(number);
  }
}

// What no rule foresaw (sizes computed as the model runs, say) shows when a unit is really taken out.
void Coupling::try_groups() {
  std::vector<std::vector<std::size_t>> removed(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].reason.empty()) continue;
    removed[g] = {0};
    if (auto tried = cut(removed); !tried) groups_[g].reason = "cannot be cut: " + tried.error().message;
    removed[g].clear();
  }
}

}  // namespace ctk::graph
