#include "search/solvers/moves.h"

#include <algorithm>

#include "search/solvers/solvers.h"

namespace ctk::search {
namespace {

constexpr std::size_t kMostStarts = 24;  // assignments of the dual, the last ones first

}  // namespace

Moves::Moves(const Grid& grid, std::vector<std::size_t> positions) : grid_(&grid), positions_(std::move(positions)) {
  GridTotal total = total_of(grid, positions_);
  loss_ = total.loss;
  costs_ = std::move(total.costs);
  for (std::size_t b = 0; b < grid.limits.size(); ++b) {
    const auto [least, most] = cost_range(grid, b);
    scales_.push_back(most <= grid.limits[b] ? 0.0
                                             : 1.0 / static_cast<double>(std::max<std::int64_t>(most - least, 1)));
  }
}

bool Moves::is_within() const {
  for (std::size_t b = 0; b < costs_.size(); ++b) {
    if (costs_[b] > grid_->limits[b]) return false;
  }
  return true;
}

double Moves::excess() const {
  double sum = 0;
  for (std::size_t b = 0; b < costs_.size(); ++b)
    sum += static_cast<double>(std::max<std::int64_t>(0, costs_[b] - grid_->limits[b])) * scales_[b];
  return sum;
}

double Moves::excess_after(const Change& change) const {
  double sum = 0;
  for (std::size_t b = 0; b < costs_.size(); ++b) {
    sum += static_cast<double>(std::max<std::int64_t>(0, costs_[b] + change.costs[b] - grid_->limits[b])) * scales_[b];
  }
  return sum;
}

double Moves::scaled_cost(const Change& change) const {
  double sum = 0;
  for (std::size_t b = 0; b < costs_.size(); ++b) sum += static_cast<double>(change.costs[b]) * scales_[b];
  return sum;
}

void Moves::change(std::size_t item, std::size_t position, Change& out) const {
  const GridChoice &from = grid_->items[item][positions_[item]], &to = grid_->items[item][position];
  out.loss = to.loss - from.loss;
  out.costs.resize(costs_.size());
  for (std::size_t b = 0; b < costs_.size(); ++b) out.costs[b] = to.costs[b] - from.costs[b];
  for (std::size_t e : grid_->edges_of[item]) {
    const GridEdge& edge = grid_->edges[e];
    const bool is_first = edge.a == item;
    const std::size_t other = is_first ? edge.b : edge.a;
    const GridChoice& beside = grid_->items[other][positions_[other]];
    const std::size_t before = is_first ? edge.at(from, beside) : edge.at(beside, from);
    const std::size_t after = is_first ? edge.at(to, beside) : edge.at(beside, to);
    out.loss += edge.loss[after] - edge.loss[before];
    for (std::size_t b = 0; b < costs_.size(); ++b) out.costs[b] += edge.costs[b][after] - edge.costs[b][before];
  }
}

void Moves::apply(std::size_t item, std::size_t position) {
  Change made;
  change(item, position, made);
  loss_ += made.loss;
  for (std::size_t b = 0; b < costs_.size(); ++b) costs_[b] += made.costs[b];
  positions_[item] = position;
}

template <class RateOf>
bool Moves::apply_best(RateOf&& rate_of) {
  Change trial;
  std::optional<double> best_rate;
  std::size_t best_item = 0, best_position = 0;
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    for (std::size_t p = 0; p < grid_->items[i].size(); ++p) {
      if (p == positions_[i]) continue;
      change(i, p, trial);
      const std::optional<double> rate = rate_of(i, p, trial);
      if (!rate || (best_rate && *rate >= *best_rate)) continue;
      best_rate = rate;
      best_item = i;
      best_position = p;
    }
  }
  if (best_rate) apply(best_item, best_position);
  return best_rate.has_value();
}

bool Moves::repair() {
  while (!is_within()) {
    const double excess_now = excess();
    const bool is_found = apply_best([&](std::size_t, std::size_t, const Change& trial) -> std::optional<double> {
      const double removed = excess_now - excess_after(trial);
      if (removed <= 1e-15) return {};
      // A move that loses nothing is best by what it removes; others by loss for each unit.
      return trial.loss <= 0 ? -1e300 * removed : static_cast<double>(trial.loss) / removed;
    });
    if (!is_found) return false;
  }
  return true;
}

void Moves::descend() {
  const auto rate_of = [&](std::size_t i, std::size_t p, const Change& trial) -> std::optional<double> {
    if (trial.loss > 0) return {};
    const std::int64_t first_cost = trial.costs.empty() ? 0 : trial.costs[0];
    // Of equal losses the tie rule takes the smaller first cost, then the earlier choice.
    const bool is_tie = trial.loss == 0 && (first_cost < 0 || (first_cost == 0 && p < positions_[i]));
    if ((trial.loss == 0 && !is_tie) || excess_after(trial) > 0) return {};
    const double paid = std::max(1e-12, scaled_cost(trial));
    return static_cast<double>(trial.loss) / paid;
  };
  while (apply_best(rate_of)) {
  }
}

void Moves::exchange(std::size_t max_steps) {
  descend();
  Change first, second;
  std::size_t steps = 0;
  for (bool is_better = true; is_better;) {
    is_better = false;
    for (std::size_t i = 0; i < positions_.size(); ++i) {
      for (std::size_t p = 0; p < grid_->items[i].size(); ++p) {
        if (p == positions_[i]) continue;
        change(i, p, first);
        if (first.loss >= 0) continue;
        // The gain breaks a limit: some other item has to pay for less than was gained.
        const std::size_t before = positions_[i];
        const std::int64_t loss_before = loss_;
        apply(i, p);
        const double over = excess();
        std::int64_t best_loss = loss_before;
        std::size_t best_item = positions_.size(), best_position = 0;
        for (std::size_t j = 0; over > 0 && j < positions_.size(); ++j) {
          if (j == i) continue;
          for (std::size_t q = 0; q < grid_->items[j].size(); ++q) {
            if (q == positions_[j]) continue;
            if (++steps > max_steps) {
              apply(i, before);
              return;
            }
            if (grid_->edges_of[j].empty() &&
                loss_ + grid_->items[j][q].loss - grid_->items[j][positions_[j]].loss >= best_loss)
              continue;
            change(j, q, second);
            if (loss_ + second.loss >= best_loss || excess_after(second) > 0) continue;
            best_loss = loss_ + second.loss;
            best_item = j;
            best_position = q;
          }
        }
        if (over <= 0) {
          is_better = true;
        } else if (best_item < positions_.size()) {
          apply(best_item, best_position);
          is_better = true;
        } else {
          apply(i, before);
        }
      }
    }
    if (is_better) descend();
  }
}

std::optional<std::vector<std::size_t>> best_repaired(const Grid& grid, const Dual& dual, std::size_t exchange_steps) {
  std::optional<std::vector<std::size_t>> best;
  const std::size_t first = dual.seen.size() > kMostStarts ? dual.seen.size() - kMostStarts : 0;
  for (std::size_t k = first; k < dual.seen.size(); ++k) {
    Moves moves(grid, dual.seen[k]);
    if (!moves.repair()) continue;
    moves.exchange(exchange_steps);
    if (!best || is_better(grid, moves.positions(), *best)) best = moves.positions();
  }
  return best;
}

Result<std::vector<std::size_t>> any_feasible(const Problem& problem) {
  Problem other = problem;
  for (Item& item : other.items) {
    for (Choice& choice : item.choices) choice.loss = 0;
  }
  for (Edge& edge : other.edges) {
    for (PairTerm& term : edge.terms) term.loss = 0;
  }
  CTK_TRY(Assignment found, solve_ilp(other));
  return std::move(found.choices);
}

}  // namespace ctk::search
