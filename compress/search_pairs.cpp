// Minimises nothing: measures interaction(a, b) = KL(a and b coded) - KL(a coded) - KL(b coded), nats, on the score
// split, with codes rounded as sensitivity metric kl has them.
// Cost: a pass over the score split a pair, and one a group that was not measured alone.
// Source: to second order KL(a, b) = KL(a) + KL(b) + da' F db, whose last term the sum of scores leaves out; it is at
// most 2 sqrt(KL(a) KL(b)), by which pairs are ranked.
#include "compress/search_pairs.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <set>

#include "compress/interrupt.h"
#include "compress/sensitivity/metrics.h"
#include "graph/layer.h"

namespace ctk::pipeline::search_table {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;

constexpr int kFewBits = 3;        // above, errors are small enough to add up
constexpr std::size_t kBatch = 8;  // pairs the answer does not have, before it is solved again

bool is_join(const Graph& graph, const graph::Node& node) {
  std::set<ValueId> inputs;
  for (ValueId input : node.inputs) {
    if (input.is_valid() && !graph.value(input).constant && !graph.value(input).quantized) inputs.insert(input);
  }
  return inputs.size() > 1;
}

// What a group's outputs reach before the next layers, past one join at most.
struct Reach {
  std::set<std::size_t> groups;
  std::set<std::uint32_t> joins;
};

Reach reach_of(const Graph& graph, const std::vector<NodeId>& from,
               const std::map<std::uint32_t, std::size_t>& group_of) {
  Reach reach;
  std::set<std::pair<std::uint32_t, bool>> seen;
  std::deque<std::pair<ValueId, bool>> open;  // a value, and whether a join lies behind it
  for (NodeId id : from) open.emplace_back(graph.node(id).outputs[0], false);
  while (!open.empty()) {
    const auto [value, joined] = open.front();
    open.pop_front();
    if (!seen.emplace(value.index, joined).second) continue;
    for (NodeId reader : graph.value(value).consumers) {
      if (const auto group = group_of.find(reader.index); group != group_of.end()) {
        reach.groups.insert(group->second);
        continue;
      }
      const bool joins = is_join(graph, graph.node(reader));
      if (joins && joined) continue;
      if (joins) reach.joins.insert(reader.index);
      for (ValueId output : graph.node(reader).outputs) {
        if (output.is_valid()) open.emplace_back(output, joined || joins);
      }
    }
  }
  return reach;
}

bool has_few_bits(const QuantScheme& scheme) {
  return scheme.is_integer_weight() && scheme.weight_bits <= kFewBits;
}

// The answer's choice if it has few bits, else the choice of few bits that loses least; fp32 where there is none.
QuantScheme few_bits_of(const Table& table, std::size_t g, std::size_t taken) {
  const Group& group = table.groups[g];
  if (has_few_bits(group.choices[taken])) return group.choices[taken];
  QuantScheme least;
  for (const QuantScheme& scheme : group.choices) {
    if (!has_few_bits(scheme)) continue;
    if (!least.is_integer_weight() ||
        group_cost(table.loss, group, scheme, true) < group_cost(table.loss, group, least, true))
      least = scheme;
  }
  return least;
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> neighbours(const Graph& graph, const std::vector<Group>& groups) {
  std::map<std::string, std::size_t> by_address;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::string& layer : groups[g].layers) by_address[layer] = g;
  }
  std::vector<std::vector<NodeId>> nodes(groups.size());
  std::map<std::uint32_t, std::size_t> group_of;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    const auto found = by_address.find(graph.address(layer.node));
    if (found == by_address.end()) continue;
    nodes[found->second].push_back(layer.node);
    group_of[layer.node.index] = found->second;
  }
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  std::map<std::uint32_t, std::vector<std::size_t>> at_join;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Reach reach = reach_of(graph, nodes[g], group_of);
    for (std::size_t other : reach.groups) {
      if (other != g) pairs.emplace(std::min(g, other), std::max(g, other));
    }
    for (std::uint32_t join : reach.joins) at_join[join].push_back(g);
  }
  for (const auto& [join, who] : at_join) {
    for (std::size_t i = 0; i < who.size(); ++i) {
      for (std::size_t j = i + 1; j < who.size(); ++j) pairs.emplace(who[i], who[j]);
    }
  }
  return {pairs.begin(), pairs.end()};
}

PairMeter::PairMeter(const Session& session, Table& table)
    : session_(session), table_(table), left_(static_cast<std::size_t>(session.config.search->pairs)) {
  if (left_ > 0) neighbours_ = neighbours(session.model.graph, table.groups);
}

Result<double> PairMeter::loss_of(const Group& a, const QuantScheme& scheme_a, const Group* b,
                                  const QuantScheme& scheme_b) {
  quantization::SchemeMap schemes;
  for (const std::string& layer : a.layers) schemes[layer] = scheme_a;
  if (b != nullptr) {
    for (const std::string& layer : b->layers) schemes[layer] = scheme_b;
  }
  CTK_TRY(const data::MetricValue kl, kl_of(session_, schemes, reference_));
  return kl.value;
}

struct PairMeter::Ranked {
  std::size_t a, b;
  double bound;
};

std::vector<PairMeter::Ranked> PairMeter::rank(const std::function<QuantScheme(std::size_t)>& scheme_of,
                                               std::size_t most) const {
  std::vector<Ranked> ranked;
  for (const auto& [a, b] : neighbours_) {
    const QuantScheme first = scheme_of(a), second = scheme_of(b);
    if (!has_few_bits(first) || !has_few_bits(second)) continue;
    const bool is_known = std::ranges::any_of(table_.pairs, [&](const PairLoss& pair) {
      return pair.first == table_.groups[a].layers[0] && pair.second == table_.groups[b].layers[0] &&
             pair.first_scheme == to_string(first) && pair.second_scheme == to_string(second);
    });
    if (is_known) continue;
    const double product = group_cost(table_.loss, table_.groups[a], first, true) *
                           group_cost(table_.loss, table_.groups[b], second, true);
    ranked.push_back({a, b, std::sqrt(std::max(0.0, product))});
  }
  std::ranges::stable_sort(ranked, std::ranges::greater{}, &Ranked::bound);
  ranked.resize(std::min({ranked.size(), left_, most}));
  return ranked;
}

Result<std::size_t> PairMeter::measure(const search::Assignment& answer) {
  std::function<QuantScheme(std::size_t)> scheme_of = [&](std::size_t g) {
    return table_.groups[g].choices[answer.choices[g]];
  };
  std::vector<Ranked> ranked = rank(scheme_of, left_);
  if (ranked.empty()) {  // what the answer passed over may lose less together than its sum
    scheme_of = [&](std::size_t g) { return few_bits_of(table_, g, answer.choices[g]); };
    ranked = rank(scheme_of, kBatch);
  }
  const auto alone = [&](std::size_t g) -> Result<double> {
    const std::pair key(table_.groups[g].layers[0], to_string(scheme_of(g)));
    if (const auto known = alone_.find(key); known != alone_.end()) return known->second;
    CTK_TRY(alone_[key], loss_of(table_.groups[g], scheme_of(g), nullptr, {}));
    return alone_[key];
  };
  for (const Ranked& pair : ranked) {
    CTK_CHECK(check_interrupt());
    const Group &a = table_.groups[pair.a], &b = table_.groups[pair.b];
    PairLoss found{a.layers[0], to_string(scheme_of(pair.a)), b.layers[0], to_string(scheme_of(pair.b))};
    CTK_TRY(const double first, alone(pair.a));
    CTK_TRY(const double second, alone(pair.b));
    found.sum = first + second;
    CTK_TRY(found.together, loss_of(a, scheme_of(pair.a), &b, scheme_of(pair.b)));
    table_.pairs.push_back(std::move(found));
  }
  left_ -= ranked.size();
  return ranked.size();
}

}  // namespace ctk::pipeline::search_table
