// Column generation over assignments, with a basis as small as the number of budgets.
// Maximises: the Lagrangian bound over multipliers >= 0; the same number as the least loss over weighted mixes of
//            assignments that keep the limits on average.
// In:  a grid. Out: multipliers [budgets], the bounds at them, the assignments met.
// Cost: some 10 to 100 calls of lagrangian(); the simplex itself works on (budgets + 1)^2 numbers.
// Source: Dantzig and Wolfe, "Decomposition principle for linear programs", 1960.
#include "search/solvers/dual.h"

#include <algorithm>
#include <cmath>

namespace ctk::search {
namespace {

constexpr int kMostRounds = 300;
constexpr double kTooDear = 1e7;  // scaled multiplier past which a limit is given up: nothing keeps it
constexpr double kTiny = 1e-11;   // of scaled sums near 1

struct Column {
  double loss = 0;
  std::vector<double> rows;  // [budgets + 1]: cost over the limit, then 1
  int kind = 0;              // 0 an assignment, 1 room left under a limit, 2 excess over it
  std::size_t which = 0;
};

// Basis columns with the inverse of their matrix, row by row.
class Master {
 public:
  Master(Column first, std::size_t budgets) : size_(budgets + 1), inverse_(size_ * size_, 0), level_(size_, 0) {
    // Room or excess for each limit beside the first assignment: its rows are +-1, so the inverse is written down.
    for (std::size_t b = 0; b < budgets; ++b) {
      const bool is_over = first.rows[b] > 0;
      basis_.push_back(edge_column(b, is_over ? 2 : 1));
      const double sign = is_over ? -1 : 1;
      inverse_[b * size_ + b] = sign;
      inverse_[b * size_ + budgets] = -sign * first.rows[b];
      level_[b] = std::abs(first.rows[b]);
    }
    basis_.push_back(std::move(first));
    inverse_[budgets * size_ + budgets] = 1;
    level_[budgets] = 1;
  }

  Column edge_column(std::size_t budget, int kind) const {
    Column column{kind == 2 ? kTooDear : 0, std::vector<double>(size_, 0), kind, budget};
    column.rows[budget] = kind == 2 ? -1 : 1;
    return column;
  }

  std::vector<double> duals() const {
    std::vector<double> y(size_, 0);
    for (std::size_t k = 0; k < size_; ++k) {
      for (std::size_t r = 0; r < size_; ++r) y[r] += basis_[k].loss * inverse_[k * size_ + r];
    }
    return y;
  }

  // False when the column cannot enter, which rounding alone brings about.
  bool enter(Column column) {
    std::vector<double> direction(size_, 0);
    for (std::size_t k = 0; k < size_; ++k) {
      for (std::size_t r = 0; r < size_; ++r) direction[k] += inverse_[k * size_ + r] * column.rows[r];
    }
    std::size_t leaving = size_;
    for (std::size_t k = 0; k < size_; ++k) {
      if (direction[k] <= kTiny) continue;
      if (leaving == size_ || level_[k] * direction[leaving] < level_[leaving] * direction[k]) leaving = k;
    }
    if (leaving == size_) return false;
    const double pivot = direction[leaving];
    const double step = std::max(0.0, level_[leaving] / pivot);
    for (std::size_t r = 0; r < size_; ++r) inverse_[leaving * size_ + r] /= pivot;
    for (std::size_t k = 0; k < size_; ++k) {
      if (k == leaving) continue;
      level_[k] = std::max(0.0, level_[k] - step * direction[k]);
      for (std::size_t r = 0; r < size_; ++r) inverse_[k * size_ + r] -= direction[k] * inverse_[leaving * size_ + r];
    }
    level_[leaving] = step;
    basis_[leaving] = std::move(column);
    return true;
  }

 private:
  std::size_t size_;
  std::vector<Column> basis_;
  std::vector<double> inverse_, level_;
};

}  // namespace

Dual best_multipliers(const Grid& grid) {
  // Limits that count, and by what losses and costs are divided so that sums stay near 1.
  const std::size_t n = grid.items.size();
  std::vector<std::size_t> active;
  std::vector<double> scales;
  double loss_scale = 1;
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t most = 0;
    for (const GridChoice& choice : grid.items[i]) most = std::max(most, choice.loss);
    loss_scale += static_cast<double>(most);
  }
  for (const GridEdge& edge : grid.edges)
    loss_scale += static_cast<double>(*std::max_element(edge.loss.begin(), edge.loss.end()));
  for (std::size_t b = 0; b < grid.limits.size(); ++b) {
    const auto [least, most] = cost_range(grid, b);
    if (most <= grid.limits[b] || most == least) continue;
    active.push_back(b);
    scales.push_back(static_cast<double>(most - least));
  }

  Dual best{std::vector<double>(grid.limits.size(), 0), {}, {}};
  best.bounds = lagrangian(grid, best.multipliers);
  const auto column_of = [&](const std::vector<std::size_t>& positions) {
    const GridTotal total = total_of(grid, positions);
    Column column{static_cast<double>(total.loss) / loss_scale, {}, 0, 0};
    for (std::size_t k = 0; k < active.size(); ++k)
      column.rows.push_back(static_cast<double>(total.costs[active[k]] - grid.limits[active[k]]) / scales[k]);
    column.rows.push_back(1);
    return column;
  };
  best.seen.push_back(cheapest_by(grid, best.bounds));
  if (active.empty()) return best;

  Master master(column_of(best.seen[0]), active.size());
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<double> y = master.duals();
    bool is_repriced = false;
    for (std::size_t k = 0; k < active.size() && !is_repriced; ++k) {
      if (y[k] > kTiny) is_repriced = master.enter(master.edge_column(k, 1));
      if (y[k] < -kTooDear * (1 + 1e-9)) is_repriced = master.enter(master.edge_column(k, 2));
    }
    if (is_repriced) continue;
    std::vector<double> multipliers(grid.limits.size(), 0);
    for (std::size_t k = 0; k < active.size(); ++k)
      multipliers[active[k]] = std::max(0.0, -y[k]) * loss_scale / scales[k];
    Lagrangian bounds = lagrangian(grid, multipliers);
    std::vector<std::size_t> positions = cheapest_by(grid, bounds);
    Column column = column_of(positions);
    double reduced = column.loss;
    for (std::size_t r = 0; r < y.size(); ++r) reduced -= y[r] * column.rows[r];
    if (bounds.bound > best.bounds.bound) {
      best.bounds = std::move(bounds);
      best.multipliers = std::move(multipliers);
    }
    const double magnitude = std::max(1e-6, std::abs(column.loss) + std::abs(y.back()));
    if (reduced >= -kTiny * magnitude) break;
    if (std::find(best.seen.begin(), best.seen.end(), positions) != best.seen.end()) break;
    best.seen.push_back(std::move(positions));
    if (!master.enter(std::move(column))) break;
  }
  return best;
}

bool is_infeasible(const Grid& grid, const Dual& dual) {
  std::int64_t most = 0;
  for (const GridItem& item : grid.items) {
    std::int64_t loss = 0;
    for (const GridChoice& choice : item) loss = std::max(loss, choice.loss);
    most += loss;
  }
  for (const GridEdge& edge : grid.edges) most += *std::max_element(edge.loss.begin(), edge.loss.end());
  return dual.bounds.bound - dual.bounds.margin > static_cast<double>(most);
}

}  // namespace ctk::search
