#include "search/grid.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace ctk::search {
namespace {

constexpr int kGridBits = 40;

// The power of two by which `largest` (a sum of magnitudes) fits kGridBits.
double unit_for(double largest) {
  if (!(largest > 0)) return 1;
  return std::ldexp(1.0, std::max(std::ilogb(largest) + 1 - kGridBits, -1000));
}

bool is_whole(double value) {
  return value == std::floor(value);
}

// No sum reaches 2^41, so a limit past that never binds.
std::int64_t clamp_limit(double units) {
  constexpr double kNever = 4398046511104.0;  // 2^42
  return static_cast<std::int64_t>(std::clamp(units, -1.0, kNever));
}

// Edges in doubles, those between the same items summed.
struct Pair {
  std::vector<double> loss;                // [choices of a * choices of b]
  std::vector<std::vector<double>> costs;  // [budgets][choices of a * choices of b]
};
using Pairs = std::map<std::pair<std::size_t, std::size_t>, Pair>;

Pairs pairs_of(const Problem& problem) {
  Pairs pairs;
  for (const Edge& edge : problem.edges) {
    const auto [a, b] = std::minmax(edge.a, edge.b);
    const std::size_t width = problem.items[b].choices.size(), size = problem.items[a].choices.size() * width;
    Pair& pair = pairs[{a, b}];
    pair.loss.resize(size, 0);
    pair.costs.resize(problem.budgets.size(), std::vector<double>(size, 0));
    for (const PairTerm& term : edge.terms) {
      const std::size_t at =
          edge.a < edge.b ? term.choice_a * width + term.choice_b : term.choice_b * width + term.choice_a;
      pair.loss[at] += term.loss;
      for (std::size_t c = 0; c < term.costs.size(); ++c) pair.costs[c][at] += term.costs[c];
    }
  }
  return pairs;
}

void add_edges(Grid& grid, const Pairs& pairs, const Problem& problem) {
  grid.edges_of.resize(problem.items.size());
  for (const auto& [ends, pair] : pairs) {
    GridEdge& edge = grid.edges.emplace_back();
    std::tie(edge.a, edge.b) = ends;
    edge.width = problem.items[edge.b].choices.size();
    const double least = *std::min_element(pair.loss.begin(), pair.loss.end());
    for (double loss : pair.loss)
      edge.loss.push_back(static_cast<std::int64_t>(std::nearbyint((loss - least) / grid.loss_unit)));
    for (std::size_t item : {edge.a, edge.b}) grid.edges_of[item].push_back(grid.edges.size() - 1);
  }
}

// Of the same item: `a` adds no more than `b` on any edge.
bool adds_no_more(const Grid& grid, std::size_t item, const GridChoice& a, const GridChoice& b) {
  for (std::size_t e : grid.edges_of[item]) {
    const GridEdge& edge = grid.edges[e];
    const bool is_first = edge.a == item;
    for (const GridChoice& other : grid.items[is_first ? edge.b : edge.a]) {
      const std::size_t with_a = is_first ? edge.at(a, other) : edge.at(other, a);
      const std::size_t with_b = is_first ? edge.at(b, other) : edge.at(other, b);
      if (edge.loss[with_a] > edge.loss[with_b]) return false;
      for (const auto& costs : edge.costs) {
        if (costs[with_a] > costs[with_b]) return false;
      }
    }
  }
  return true;
}

// `a` makes `b` superfluous, edges aside.
bool dominates(const GridChoice& a, const GridChoice& b) {
  if (a.loss > b.loss) return false;
  for (std::size_t i = 0; i < a.costs.size(); ++i) {
    if (a.costs[i] > b.costs[i]) return false;
  }
  const bool is_cheaper = !a.costs.empty() && a.costs[0] < b.costs[0];
  return a.loss < b.loss || is_cheaper || a.index < b.index;
}

}  // namespace

Grid make_grid(const Problem& problem) {
  Grid grid;
  double largest_loss = 0;
  for (const Item& item : problem.items) {
    double most = item.choices[0].loss, least = most;
    for (const Choice& choice : item.choices) {
      most = std::max(most, choice.loss);
      least = std::min(least, choice.loss);
    }
    largest_loss += most - least;
    grid.loss_offset += least;
  }
  const Pairs pairs = pairs_of(problem);
  for (const auto& [ends, pair] : pairs) {
    const auto [least, most] = std::minmax_element(pair.loss.begin(), pair.loss.end());
    largest_loss += *most - *least;
    grid.loss_offset += *least;
  }
  grid.loss_unit = unit_for(largest_loss);
  for (const Item& item : problem.items) {
    double least = item.choices[0].loss;
    for (const Choice& choice : item.choices) least = std::min(least, choice.loss);
    GridItem& choices = grid.items.emplace_back();
    for (std::size_t c = 0; c < item.choices.size(); ++c) {
      const double loss = std::nearbyint((item.choices[c].loss - least) / grid.loss_unit);
      choices.push_back({c, static_cast<std::int64_t>(loss), std::vector<std::int64_t>(problem.budgets.size())});
    }
  }
  add_edges(grid, pairs, problem);
  for (std::size_t b = 0; b < problem.budgets.size(); ++b) {
    const Budget& budget = problem.budgets[b];
    double largest = budget.fixed;
    bool all_whole = is_whole(budget.fixed);
    for (const Item& item : problem.items) {
      double most = 0;
      for (const Choice& choice : item.choices) {
        most = std::max(most, choice.costs[b]);
        all_whole = all_whole && is_whole(choice.costs[b]);
      }
      largest += most;
    }
    for (const auto& [ends, pair] : pairs) {
      largest += *std::max_element(pair.costs[b].begin(), pair.costs[b].end());
      all_whole = all_whole && std::all_of(pair.costs[b].begin(), pair.costs[b].end(), is_whole);
    }
    double unit = unit_for(largest);
    const bool is_exact = all_whole && unit <= 1;
    if (is_exact) unit = 1;
    grid.cost_units.push_back(unit);
    const auto to_units = [&](double value) { return std::nearbyint(value / unit); };
    const double limit = is_exact ? std::floor(budget.limit) : to_units(budget.limit);
    grid.limits.push_back(clamp_limit(limit - to_units(budget.fixed)));
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      for (GridChoice& choice : grid.items[i]) {
        choice.costs[b] = static_cast<std::int64_t>(to_units(problem.items[i].choices[choice.index].costs[b]));
      }
    }
    for (GridEdge& edge : grid.edges) {
      auto& costs = edge.costs.emplace_back();
      for (double cost : pairs.at({edge.a, edge.b}).costs[b])
        costs.push_back(static_cast<std::int64_t>(to_units(cost)));
    }
  }
  return grid;
}

void drop_dominated(Grid& grid) {
  for (std::size_t i = 0; i < grid.items.size(); ++i) {
    GridItem& item = grid.items[i];
    const GridItem all = item;
    std::erase_if(item, [&](const GridChoice& choice) {
      return std::any_of(all.begin(), all.end(), [&](const GridChoice& other) {
        return other.index != choice.index && dominates(other, choice) && adds_no_more(grid, i, other, choice);
      });
    });
  }
}

CostRange cost_range(const Grid& grid, std::size_t budget) {
  CostRange range;
  for (const GridItem& item : grid.items) {
    const auto by_cost = [budget](const GridChoice& x, const GridChoice& y) {
      return x.costs[budget] < y.costs[budget];
    };
    const auto [low, high] = std::minmax_element(item.begin(), item.end(), by_cost);
    range.least += low->costs[budget];
    range.most += high->costs[budget];
  }
  for (const GridEdge& edge : grid.edges) {
    const auto [low, high] = std::minmax_element(edge.costs[budget].begin(), edge.costs[budget].end());
    range.least += *low;
    range.most += *high;
  }
  return range;
}

GridTotal total_of(const Grid& grid, const std::vector<std::size_t>& positions) {
  GridTotal total;
  total.costs.resize(grid.limits.size(), 0);
  for (std::size_t i = 0; i < grid.items.size(); ++i) {
    const GridChoice& choice = grid.items[i][positions[i]];
    total.loss += choice.loss;
    for (std::size_t b = 0; b < total.costs.size(); ++b) total.costs[b] += choice.costs[b];
  }
  for (const GridEdge& edge : grid.edges) {
    const std::size_t at = edge.at(grid.items[edge.a][positions[edge.a]], grid.items[edge.b][positions[edge.b]]);
    total.loss += edge.loss[at];
    for (std::size_t b = 0; b < total.costs.size(); ++b) total.costs[b] += edge.costs[b][at];
  }
  total.is_within = true;
  for (std::size_t b = 0; b < total.costs.size(); ++b) {
    total.is_within = total.is_within && total.costs[b] <= grid.limits[b];
  }
  return total;
}

bool is_better(const Grid& grid, const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  const GridTotal total_a = total_of(grid, a), total_b = total_of(grid, b);
  if (total_a.loss != total_b.loss) return total_a.loss < total_b.loss;
  if (!total_a.costs.empty() && total_a.costs[0] != total_b.costs[0]) return total_a.costs[0] < total_b.costs[0];
  return a < b;
}

Assignment optimal_assignment(const Problem& problem, const Grid& grid, const std::vector<std::size_t>& positions) {
  std::vector<std::size_t> choices;
  for (std::size_t i = 0; i < positions.size(); ++i) choices.push_back(grid.items[i][positions[i]].index);
  Assignment found = search::total_of(problem, std::move(choices));
  found.proved_optimal = true;
  found.bound = found.loss;
  return found;
}

Assignment bounded_assignment(const Problem& problem, const Grid& grid, const std::vector<std::size_t>& positions,
                              double bound) {
  Assignment found = optimal_assignment(problem, grid, positions);
  if (std::ceil(bound) >= static_cast<double>(total_of(grid, positions).loss)) return found;
  found.proved_optimal = false;
  found.bound = std::min(found.loss, grid.loss_offset + grid.loss_unit * bound);
  found.gap = found.loss - found.bound;
  return found;
}

}  // namespace ctk::search
