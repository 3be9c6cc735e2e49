#include "search/grid.h"

#include <algorithm>
#include <cmath>

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

// `a` makes `b` superfluous.
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
    double unit = unit_for(largest);
    const bool is_exact = all_whole && unit <= 1;
    if (is_exact) unit = 1;
    const auto to_units = [&](double value) { return std::nearbyint(value / unit); };
    const double limit = is_exact ? std::floor(budget.limit) : to_units(budget.limit);
    grid.limits.push_back(clamp_limit(limit - to_units(budget.fixed)));
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      for (GridChoice& choice : grid.items[i]) {
        choice.costs[b] = static_cast<std::int64_t>(to_units(problem.items[i].choices[choice.index].costs[b]));
      }
    }
  }
  return grid;
}

void drop_dominated(Grid& grid) {
  for (GridItem& item : grid.items) {
    const GridItem all = item;
    std::erase_if(item, [&](const GridChoice& choice) {
      return std::any_of(all.begin(), all.end(), [&](const GridChoice& other) {
        return other.index != choice.index && dominates(other, choice);
      });
    });
  }
}

GridTotal total_of(const Grid& grid, const std::vector<std::size_t>& positions) {
  GridTotal total;
  total.costs.resize(grid.limits.size(), 0);
  for (std::size_t i = 0; i < grid.items.size(); ++i) {
    const GridChoice& choice = grid.items[i][positions[i]];
    total.loss += choice.loss;
    for (std::size_t b = 0; b < total.costs.size(); ++b) total.costs[b] += choice.costs[b];
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

}  // namespace ctk::search
