// Dynamic programme: for one budget, exact. States are (cost, loss) pairs that really occur, not an array of costs.
// Minimises: sum of losses within the one finite limit.
// In:  a Problem with at most one finite budget. Out: an Assignment, the best by the tie rule.
// Method: item after item, a state for each sum that no other beats; with edges apart for each set of choices that
// later
//         items still have an edge to. A state whose bound exceeds the best known loss is dropped, which keeps their
//         number small whatever the size of the costs.
// Cost: items x choices x states. Past kMostStates the worst bounds are dropped, and the gap says what that may hide.
// Source: Kellerer, Pferschy, Pisinger, "Knapsack Problems", 2004, 11.5. Differs: lists in place of arrays, edges.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "search/infeasible.h"
#include "search/solvers/moves.h"
#include "search/solvers/solvers.h"

namespace ctk::search {
namespace {

constexpr std::size_t kMostStates = 20'000;
constexpr std::size_t kExchangeSteps = 100'000;

struct State {
  std::uint64_t key = 0;  // choices of the frontier
  std::int64_t cost = 0, loss = 0, first_cost = 0;
  double reduced = 0;  // bound + reduced: no completion loses less
  std::uint32_t parent = 0, position = 0;
};

// Items up to some item that have an edge to a later one, with the place value of each in a key.
struct Frontier {
  std::vector<std::size_t> items;
  std::vector<std::uint64_t> places;
  bool fits = true;
};

Frontier frontier_after(const Grid& grid, std::size_t last) {
  Frontier frontier;
  std::uint64_t place = 1;
  for (std::size_t i = 0; i <= last; ++i) {
    bool is_needed = false;
    for (std::size_t e : grid.edges_of[i]) is_needed = is_needed || grid.edges[e].b > last;
    if (!is_needed) continue;
    frontier.items.push_back(i);
    frontier.places.push_back(place);
    const std::uint64_t choices = grid.items[i].size();
    frontier.fits = frontier.fits && place < (std::uint64_t{1} << 60) / choices;
    place *= choices;
  }
  return frontier;
}

// Drops states that another with the same key beats for every completion. In: prefixes in the order of the tie rule;
// stays so.
void drop_beaten(std::vector<State>& states) {
  std::vector<std::uint32_t> order(states.size());
  for (std::uint32_t k = 0; k < order.size(); ++k) order[k] = k;
  std::sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
    const State &a = states[x], &b = states[y];
    return std::tie(a.key, a.cost, a.loss, a.first_cost, x) < std::tie(b.key, b.cost, b.loss, b.first_cost, y);
  });
  std::vector<bool> is_kept(states.size(), false);
  // Of one key, by cost: losses with the least first cost so far, falling as the loss grows, and the earliest prefix.
  std::map<std::int64_t, std::pair<std::int64_t, std::uint32_t>> best;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const State& state = states[order[k]];
    if (k > 0 && states[order[k - 1]].key != state.key) best.clear();
    const auto after = best.upper_bound(state.loss);
    if (after != best.begin()) {
      const auto& [loss, at] = *std::prev(after);
      const auto& [first_cost, prefix] = at;
      if (first_cost < state.first_cost) continue;
      if (first_cost == state.first_cost && (loss < state.loss || prefix < order[k])) continue;
    }
    is_kept[order[k]] = true;
    const auto place = best.insert_or_assign(state.loss, std::pair(state.first_cost, order[k])).first;
    for (auto next = std::next(place); next != best.end() && next->second.first >= state.first_cost;)
      next = best.erase(next);
  }
  std::size_t kept = 0;
  for (std::size_t k = 0; k < states.size(); ++k) {
    if (is_kept[k]) states[kept++] = states[k];
  }
  states.resize(kept);
}

// Keeps the states of least bound and returns the least that was dropped.
double drop_worst(std::vector<State>& states, double lost) {
  if (states.size() <= kMostStates) return lost;
  std::vector<double> reduced;
  for (const State& state : states) reduced.push_back(state.reduced);
  std::nth_element(reduced.begin(), reduced.begin() + kMostStates, reduced.end());
  const double limit = reduced[kMostStates];
  std::erase_if(states, [&](const State& state) { return state.reduced >= limit; });
  return std::min(lost, limit);
}

class Programme {
 public:
  Programme(const Grid& grid, const Lagrangian& bounds, std::size_t budget, double best_known)
      : grid_(grid), bounds_(bounds), budget_(budget), best_known_(best_known) {
    least_rest_.assign(grid.items.size() + 1, 0);
    for (std::size_t i = grid.items.size(); i-- > 0;) {
      std::int64_t least = cost_of(grid.items[i][0]);
      for (const GridChoice& choice : grid.items[i]) least = std::min(least, cost_of(choice));
      least_rest_[i] = least_rest_[i + 1] + least;
    }
  }

  // Empty: no assignment is better than best_known (or all that are were dropped).
  std::vector<std::size_t> run() {
    std::vector<State> states(1);
    Frontier frontier;
    for (std::size_t i = 0; i < grid_.items.size(); ++i) {
      const Frontier next = frontier_after(grid_, i);
      states = expand(i, states, frontier, next);
      drop_beaten(states);
      lost_ = drop_worst(states, lost_);
      auto& steps = history_.emplace_back();
      for (const State& state : states) steps.push_back({state.parent, state.position});
      frontier = next;
    }
    if (states.empty()) return {};
    const auto best = std::min_element(states.begin(), states.end(), [](const State& a, const State& b) {
      return std::tie(a.loss, a.first_cost) < std::tie(b.loss, b.first_cost);  // the first of equals has the order
    });
    std::vector<std::size_t> positions(grid_.items.size());
    std::size_t at = static_cast<std::size_t>(best - states.begin());
    for (std::size_t i = positions.size(); i-- > 0;) {
      positions[i] = history_[i][at].second;
      at = history_[i][at].first;
    }
    return positions;
  }

  // Grid loss below which nothing was dropped for want of room; infinite when nothing was.
  double lost() const { return bounds_.bound + lost_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::int64_t cost_of(const GridChoice& choice) const { return budget_ == kNone ? 0 : choice.costs[budget_]; }

  std::vector<State> expand(std::size_t i, const std::vector<State>& states, const Frontier& before,
                            const Frontier& after) const {
    std::vector<std::size_t> back;
    for (std::size_t e : grid_.edges_of[i]) {
      if (grid_.edges[e].b == i) back.push_back(e);
    }
    const std::size_t width = grid_.items[i].size();
    const auto place_in = [](const Frontier& frontier, std::size_t item) {
      return static_cast<std::size_t>(std::find(frontier.items.begin(), frontier.items.end(), item) -
                                      frontier.items.begin());
    };
    const auto position_in = [&](std::uint64_t key, std::size_t slot) {
      return static_cast<std::size_t>(key / before.places[slot] % grid_.items[before.items[slot]].size());
    };
    std::vector<std::size_t> back_slots, kept_slots;
    for (std::size_t e : back) back_slots.push_back(place_in(before, grid_.edges[e].a));
    for (std::size_t item : after.items) kept_slots.push_back(item == i ? kNone : place_in(before, item));
    std::vector<State> out;
    for (std::uint32_t parent = 0; parent < states.size(); ++parent) {
      for (std::uint32_t p = 0; p < width; ++p) {
        const GridChoice& choice = grid_.items[i][p];
        State state = states[parent];
        state.parent = parent;
        state.position = p;
        state.loss += choice.loss;
        state.cost += cost_of(choice);
        state.first_cost += choice.costs.empty() ? 0 : choice.costs[0];
        state.reduced += bounds_.reduced[i][p];
        for (std::size_t k = 0; k < back.size(); ++k) {
          const GridEdge& edge = grid_.edges[back[k]];
          const std::size_t other = position_in(states[parent].key, back_slots[k]);
          const std::size_t at = edge.at(grid_.items[edge.a][other], choice);
          state.loss += edge.loss[at];
          state.cost += budget_ == kNone ? 0 : edge.costs[budget_][at];
          state.first_cost += edge.costs.empty() ? 0 : edge.costs[0][at];
          state.reduced += bounds_.reduced_edges[back[k]][other * width + p];
        }
        if (budget_ != kNone && state.cost + least_rest_[i + 1] > grid_.limits[budget_]) continue;
        if (bounds_.bound + state.reduced > best_known_ + bounds_.margin) continue;
        state.key = 0;
        for (std::size_t k = 0; k < after.items.size(); ++k)
          state.key += after.places[k] * (kept_slots[k] == kNone ? p : position_in(states[parent].key, kept_slots[k]));
        out.push_back(state);
      }
    }
    return out;
  }

  const Grid& grid_;
  const Lagrangian& bounds_;
  std::size_t budget_;
  double best_known_, lost_ = 1e300;
  std::vector<std::int64_t> least_rest_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> history_;  // [items][states] parent, position
};

}  // namespace

Result<Assignment> solve_dp(const Problem& problem) {
  CTK_CHECK(check_problem(problem));
  std::string finite;
  std::size_t budget = static_cast<std::size_t>(-1), count = 0;
  for (std::size_t b = 0; b < problem.budgets.size(); ++b) {
    if (!std::isfinite(problem.budgets[b].limit)) continue;
    finite += (count++ == 0 ? "" : ", ") + problem.budgets[b].name;
    budget = b;
  }
  if (count > 1) {
    return config_error("search.solver: dp expected one budget with a limit, found " + std::to_string(count) + " (" +
                        finite + "). Use solver ilp");
  }
  Grid grid = make_grid(problem);
  drop_dominated(grid);
  for (std::size_t i = 0; i < grid.items.size(); ++i) {
    if (frontier_after(grid, i).fits) continue;
    return input_error("search.solver: dp expected few edges across any point of the order of items, found more than " +
                       std::to_string(frontier_after(grid, i).items.size() - 1) + " at item \"" +
                       problem.items[i].name + "\". Use solver ilp");
  }
  const Dual dual = best_multipliers(grid);
  if (is_infeasible(grid, dual)) return explain_infeasible(problem, solve_ilp);
  const auto known = best_repaired(grid, dual, kExchangeSteps);
  const double best_known = known ? static_cast<double>(total_of(grid, *known).loss) : 1e300;
  Programme programme(grid, dual.bounds, budget, best_known);
  std::vector<std::size_t> best = programme.run();
  if (best.empty() && !grid.items.empty()) {
    if (!known && programme.lost() > 1e299) return explain_infeasible(problem, solve_ilp);
    if (!known) return solve_ilp(problem);
    best = *known;
  } else if (known && is_better(grid, *known, best)) {
    best = *known;
  }
  if (!total_of(grid, best).is_within) return explain_infeasible(problem, solve_ilp);
  if (programme.lost() > 1e299) return optimal_assignment(problem, grid, best);
  return bounded_assignment(problem, grid, best, std::max(dual.bounds.bound, programme.lost()) - dual.bounds.margin);
}

}  // namespace ctk::search
