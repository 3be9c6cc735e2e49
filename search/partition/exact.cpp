// Exact: a dynamic programme over the nodes in the order they run in.
// Minimises: the total (compute, transfers, conversions, launches), one thing after the other.
// In:  a Task. Out: a Plan with bound and gap.
// Method: after each node, a state is where the values that are still needed lie, and which unit ran last. Of equal
//         states the cheapest stays; one that cannot beat the best known placement is dropped. On chains that is one
//         state a unit; on graphs, as many as the values alive at once allow.
// Cost: nodes x states x units. Past some thousand states the dearest are dropped, and the gap says what that may hide.
// Differs for the makespan: the placement of least total, then improved; only its gap to the shared work is known.
#include <algorithm>
#include <cmath>
#include <map>

#include "search/partition/solvers.h"

namespace ctk::search::partition {
namespace {

constexpr std::size_t kMostStates = 20'000, kLeastStates = 1000;
constexpr std::size_t kSteps = 2'000'000;  // states x units x nodes, some 2 s

struct State {
  double cost = 0;
  std::size_t parent = 0, unit = 0;
};

// For each live value: its producer's unit, then the units that hold it, one bit each. Last: the unit that ran last.
using Key = std::basic_string<char32_t>;

struct Alive {
  std::vector<std::size_t> values;  // after a node, in order
};

}  // namespace

Plan place_exactly(const Task& task, const Options& options) {
  const std::size_t n = task.nodes.size(), units = task.units.size();
  std::vector<std::size_t> known;
  double best_known = kCannotRun;
  for (const auto& other : {place_by_rules, place_greedily, place_by_annealing}) {
    Plan plan = other(task, {options.seed, Objective::total});
    if (plan.cost.total_us >= best_known) continue;
    best_known = plan.cost.total_us;
    known = std::move(plan.unit_of);
  }
  const std::size_t most_states = std::clamp(kSteps / std::max<std::size_t>(1, n * units), kLeastStates, kMostStates);
  if (units > 16) return plan_of(task, std::move(known), options.objective);
  std::vector<double> rest(n + 1, 0);  // the least that nodes from here on take
  for (std::size_t i = n; i-- > 0;) {
    double least = kCannotRun;
    for (const NodeTime& time : task.nodes[i].on) least = std::min(least, time.us);
    rest[i] = rest[i + 1] + least;
  }
  std::vector<std::size_t> last_reader(task.values.size(), 0);
  std::vector<std::vector<std::size_t>> inputs(n), outputs(n);
  Alive alive;
  Key start;
  for (std::size_t v = 0; v < task.values.size(); ++v) {
    const Value& value = task.values[v];
    for (std::size_t consumer : value.consumers) {
      last_reader[v] = std::max(last_reader[v], consumer);
      inputs[consumer].push_back(v);
    }
    if (value.producer != kOutside) {
      outputs[value.producer].push_back(v);
    } else if (!value.consumers.empty()) {
      alive.values.push_back(v);
      start += {0, 1};
    }
  }
  start += static_cast<char32_t>(units);  // none ran yet

  std::vector<std::vector<State>> history;
  std::vector<Key> keys{start};
  std::vector<State> states(1);
  double lost = kCannotRun;
  for (std::size_t i = 0; i < n; ++i) {
    Alive next_alive;
    for (std::size_t v : alive.values) {
      if (last_reader[v] > i) next_alive.values.push_back(v);
    }
    for (std::size_t v : outputs[i]) {
      if (!task.values[v].consumers.empty()) next_alive.values.push_back(v);
    }
    std::map<Key, State> next;
    for (std::size_t s = 0; s < states.size(); ++s) {
      for (std::size_t unit = 0; unit < units; ++unit) {
        const double us = task.nodes[i].on[unit].us;
        if (!std::isfinite(us)) continue;
        Key key = keys[s];
        double cost = states[s].cost + us;
        if (key.back() != unit) cost += task.units[unit].launch_us;
        for (std::size_t v : inputs[i]) {
          const std::size_t slot =
              static_cast<std::size_t>(std::find(alive.values.begin(), alive.values.end(), v) - alive.values.begin());
          const std::size_t from = key[2 * slot];
          if ((key[2 * slot + 1] >> unit & 1) == 0) cost += transfer_us(task, task.values[v], from, unit);
          key[2 * slot + 1] |= char32_t{1} << unit;
          cost += convert_us(task, task.values[v], from, i, unit);
        }
        Key after;
        for (std::size_t slot = 0; slot < alive.values.size(); ++slot) {
          if (last_reader[alive.values[slot]] > i) after += {key[2 * slot], key[2 * slot + 1]};
        }
        for (std::size_t v : outputs[i]) {
          const Value& value = task.values[v];
          char32_t holders = char32_t{1} << unit;
          if (value.is_output) {
            cost += transfer_us(task, value, unit, 0) + return_convert_us(task, value, unit);
            holders |= 1;
          }
          if (!value.consumers.empty()) after += {static_cast<char32_t>(unit), holders};
        }
        after += static_cast<char32_t>(unit);
        if (cost + rest[i + 1] > best_known * (1 + 1e-12)) continue;
        const auto [at, is_new] = next.try_emplace(std::move(after), State{cost, s, unit});
        if (!is_new && cost < at->second.cost) at->second = {cost, s, unit};
      }
    }
    alive = std::move(next_alive);
    std::vector<std::pair<Key, State>> kept(std::make_move_iterator(next.begin()), std::make_move_iterator(next.end()));
    // In the order of placements, so that of equal costs the earlier unit stays.
    std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.parent, a.second.unit) < std::pair(b.second.parent, b.second.unit);
    });
    if (kept.size() > most_states) {
      std::vector<double> costs;
      for (const auto& [key, state] : kept) costs.push_back(state.cost);
      std::nth_element(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(most_states), costs.end());
      const double limit = costs[most_states];
      lost = std::min(lost, limit + rest[i + 1]);
      std::erase_if(kept, [&](const auto& entry) { return entry.second.cost >= limit; });
    }
    keys.clear();
    states.clear();
    for (auto& [key, state] : kept) {
      keys.push_back(std::move(key));
      states.push_back(state);
    }
    history.push_back(states);
  }
  std::vector<std::size_t> unit_of(n);
  if (!states.empty()) {
    const auto best =
        std::min_element(states.begin(), states.end(), [](const State& a, const State& b) { return a.cost < b.cost; });
    std::size_t at = static_cast<std::size_t>(best - states.begin());
    for (std::size_t i = n; i-- > 0;) {
      unit_of[i] = history[i][at].unit;
      at = history[i][at].parent;
    }
    if (n > 0 && cost_of(task, unit_of).total_us > best_known) unit_of = known;
  } else {
    unit_of = known;  // everything better was dropped for want of room
  }
  if (options.objective == Objective::makespan) {
    improve(task, unit_of, options.objective);
    return plan_of(task, std::move(unit_of), options.objective);
  }
  Plan plan = plan_of(task, std::move(unit_of), options.objective);
  plan.bound_us = std::min(plan.cost.total_us, std::max(plan.bound_us, lost));
  plan.gap_us = plan.cost.total_us - plan.bound_us;
  plan.proved_optimal = plan.gap_us == 0;
  return plan;
}

}  // namespace ctk::search::partition
