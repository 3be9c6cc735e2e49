// The core and the exact walk through it. Everything that decides is int64; doubles only prune, with a margin.
#include <algorithm>
#include <cmath>
#include <limits>

#include "search/solvers/core_problem.h"

namespace ctk::search {
namespace {

class Walk {
 public:
  Walk(const Grid& grid, const Lagrangian& bounds, const Core& core, std::size_t max_steps,
       std::vector<std::size_t>& best)
      : grid_(grid), bounds_(bounds), core_(core), steps_left_(max_steps), best_(best), budgets_(grid.limits.size()) {
    const GridTotal total = total_of(grid, best);
    best_loss_ = total.loss;
    best_cost_ = budgets_ == 0 ? 0 : total.costs[0];
    // What the items from i on cost at least; edges cost nothing at least.
    const std::size_t n = core.size();
    least_loss_.assign(n + 1, 0);
    least_costs_.assign((n + 1) * budgets_, 0);
    for (std::size_t i = n; i-- > 0;) {
      std::int64_t least = grid.items[i][core[i][0]].loss;
      for (std::size_t p : core[i]) least = std::min(least, grid.items[i][p].loss);
      least_loss_[i] = least_loss_[i + 1] + least;
      for (std::size_t b = 0; b < budgets_; ++b) {
        std::int64_t cheapest = grid.items[i][core[i][0]].costs[b];
        for (std::size_t p : core[i]) cheapest = std::min(cheapest, grid.items[i][p].costs[b]);
        least_costs_[i * budgets_ + b] = least_costs_[(i + 1) * budgets_ + b] + cheapest;
      }
    }
    back_.resize(n);
    for (std::size_t e = 0; e < grid.edges.size(); ++e) back_[grid.edges[e].b].push_back(e);
    spent_.assign((n + 1) * budgets_, 0);
    positions_.assign(n, 0);
  }

  bool run() { return step(0, 0, 0.0); }

 private:
  bool step(std::size_t i, std::int64_t loss, double reduced) {
    if (i == core_.size()) {
      accept(loss);
      return true;
    }
    for (std::size_t p : core_[i]) {
      if (steps_left_ == 0) return false;
      --steps_left_;
      const GridChoice& choice = grid_.items[i][p];
      double next_reduced = reduced + bounds_.reduced[i][p];
      std::int64_t next_loss = loss + choice.loss;
      for (std::size_t e : back_[i]) {
        const GridEdge& edge = grid_.edges[e];
        const std::size_t other = positions_[edge.a];
        next_reduced += bounds_.reduced_edges[e][other * grid_.items[i].size() + p];
        next_loss += edge.loss[edge.at(grid_.items[edge.a][other], choice)];
      }
      if (next_loss + least_loss_[i + 1] > best_loss_) continue;
      if (bounds_.bound + next_reduced > static_cast<double>(best_loss_) + bounds_.margin) continue;
      bool fits = true;
      for (std::size_t b = 0; b < budgets_; ++b) {
        std::int64_t spent = spent_[i * budgets_ + b] + choice.costs[b];
        for (std::size_t e : back_[i]) {
          const GridEdge& edge = grid_.edges[e];
          spent += edge.costs[b][edge.at(grid_.items[edge.a][positions_[edge.a]], choice)];
        }
        spent_[(i + 1) * budgets_ + b] = spent;
        fits = fits && spent + least_costs_[(i + 1) * budgets_ + b] <= grid_.limits[b];
      }
      if (!fits) continue;
      positions_[i] = p;
      if (!step(i + 1, next_loss, next_reduced)) return false;
    }
    return true;
  }

  // Assignments come in lexicographic order, so among equals the first found stays.
  void accept(std::int64_t loss) {
    const std::int64_t cost = budgets_ == 0 ? 0 : spent_[core_.size() * budgets_];
    const bool is_tie = loss == best_loss_ && cost == best_cost_;
    const bool is_less = loss < best_loss_ || (loss == best_loss_ && cost < best_cost_);
    if (!is_less && !(is_tie && !found_own_ && positions_ <= best_)) return;
    best_loss_ = loss;
    best_cost_ = cost;
    best_ = positions_;
    found_own_ = true;
  }

  const Grid& grid_;
  const Lagrangian& bounds_;
  const Core& core_;
  std::size_t steps_left_;
  std::vector<std::size_t>& best_;
  std::size_t budgets_;
  std::int64_t best_loss_ = 0, best_cost_ = 0;
  bool found_own_ = false;
  std::vector<std::int64_t> least_loss_, least_costs_, spent_;  // the latter two [items + 1, budgets]
  std::vector<std::vector<std::size_t>> back_;                  // [items], edges to earlier items
  std::vector<std::size_t> positions_;
};

}  // namespace

Core core_of(const Lagrangian& bounds, double slack) {
  Core core;
  for (const auto& least_with : bounds.least_with) {
    auto& open = core.emplace_back();
    for (std::size_t p = 0; p < least_with.size(); ++p) {
      if (least_with[p] <= slack + bounds.margin) open.push_back(p);
    }
  }
  return core;
}

bool is_whole(const Core& core, const Grid& grid) {
  for (std::size_t i = 0; i < core.size(); ++i) {
    if (core[i].size() != grid.items[i].size()) return false;
  }
  return true;
}

bool walk_core(const Grid& grid, const Lagrangian& bounds, const Core& core, std::size_t max_steps,
               std::vector<std::size_t>& best) {
  return Walk(grid, bounds, core, max_steps, best).run();
}

Unlimited best_without_limits(Grid grid, std::size_t max_steps) {
  std::fill(grid.limits.begin(), grid.limits.end(), std::numeric_limits<std::int64_t>::max());
  const Lagrangian bounds = lagrangian(grid, {});
  Unlimited best{cheapest_by(grid, bounds), 0, 0, false};
  const double slack = static_cast<double>(total_of(grid, best.positions).loss) - bounds.bound;
  best.is_walked = walk_core(grid, bounds, core_of(bounds, slack), max_steps, best.positions);
  best.loss = total_of(grid, best.positions).loss;
  best.bound = best.is_walked ? best.loss
                              : std::min(best.loss, static_cast<std::int64_t>(std::ceil(bounds.bound - bounds.margin)));
  return best;
}

void exchange_ties(const Grid& grid, std::vector<std::size_t>& best) {
  const auto try_positions = [&](std::vector<std::size_t>& trial) {
    if (!total_of(grid, trial).is_within || !is_better(grid, trial, best)) return false;
    best = trial;
    return true;
  };
  // Comparing whole totals for every pair would cost items^3; the difference of two choices is enough to filter. Items
  // with edges are exchanged alone only.
  const std::size_t n = best.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t p = 0; p < best[i]; ++p) {
      std::vector<std::size_t> trial = best;
      trial[i] = p;
      if (try_positions(trial)) break;
      const std::int64_t rise = grid.items[i][p].loss - grid.items[i][best[i]].loss;
      bool is_found = false;
      if (!grid.edges_of[i].empty()) continue;
      for (std::size_t j = n; j-- > i + 1 && !is_found;) {  // the last may rise, so that earlier ones stay early
        if (!grid.edges_of[j].empty()) continue;
        for (std::size_t q = 0; q < grid.items[j].size() && !is_found; ++q) {
          if (q == best[j] || grid.items[j][best[j]].loss - grid.items[j][q].loss != rise) continue;
          const std::size_t kept = trial[j];
          trial[j] = q;
          is_found = try_positions(trial);
          trial[j] = kept;
        }
      }
      if (is_found) break;
    }
  }
}

}  // namespace ctk::search
