// Lagrangian bounds with pairwise terms.
// Maximises: a lower bound of min over assignments of (loss + multipliers . costs), edges included.
// In:  a grid, multipliers [budgets]. Out: bound and what each position and pair adds to it, all >= 0.
// Method: what an edge costs at least for a position moves to that item and on to its other edges, forwards through the
//         items and backwards; no step lowers the bound. On chains and trees two sweeps make it exact.
// Cost: sweeps x edges x pairs of choices.
// Source: Kolmogorov, "Convergent tree-reweighted message passing for energy minimization", 2006. Differs: at most
// kMostSweeps, and prices are kept in place of messages, so that the result is a bound whatever rounding did.
#include "search/solvers/bounds.h"

#include <algorithm>
#include <cmath>

namespace ctk::search {
namespace {

constexpr int kMostSweeps = 12;  // forwards and backwards; bounds on loops of edges gain little after that

class Prices {
 public:
  Prices(const Grid& grid, const std::vector<double>& multipliers) : grid_(grid) {
    const auto priced = [&](std::int64_t loss, const auto& cost_of) {
      double price = static_cast<double>(loss);
      for (std::size_t b = 0; b < multipliers.size(); ++b) price += multipliers[b] * static_cast<double>(cost_of(b));
      return price;
    };
    for (const GridItem& item : grid.items) {
      auto& prices = items.emplace_back();
      for (const GridChoice& choice : item)
        prices.push_back(priced(choice.loss, [&](std::size_t b) { return choice.costs[b]; }));
      least_item_.push_back(*std::min_element(prices.begin(), prices.end()));
    }
    for (const GridEdge& edge : grid.edges) {
      auto& prices = edges.emplace_back();
      for (const GridChoice& a : grid.items[edge.a]) {
        for (const GridChoice& b : grid.items[edge.b]) {
          const std::size_t at = edge.at(a, b);
          prices.push_back(priced(edge.loss[at], [&](std::size_t c) { return edge.costs[c][at]; }));
        }
      }
      least_edge_.push_back(*std::min_element(prices.begin(), prices.end()));
    }
  }

  double bound() const {
    double sum = 0;
    for (double least : least_item_) sum += least;
    for (double least : least_edge_) sum += least;
    return sum;
  }

  // The least each position pays on the item's edges moves to the item.
  void collect(std::size_t item) {
    std::vector<double>& own = items[item];
    for (std::size_t e : grid_.edges_of[item]) {
      const Strides s = strides(e, item);
      for (std::size_t p = 0; p < own.size(); ++p) {
        double* row = edges[e].data() + p * s.own;
        double least = row[0];
        for (std::size_t q = 1; q < s.others; ++q) least = std::min(least, row[q * s.other]);
        for (std::size_t q = 0; q < s.others; ++q) row[q * s.other] -= least;
        own[p] += least;
      }
      least_edge_[e] = 0;
    }
    least_item_[item] = *std::min_element(own.begin(), own.end());
  }

  // The item's prices move to its edges towards later items, or towards earlier ones.
  void distribute(std::size_t item, bool to_later) {
    std::size_t later = 0, earlier = 0;
    for (std::size_t e : grid_.edges_of[item]) ++(grid_.edges[e].a == item ? later : earlier);
    if ((to_later ? later : earlier) == 0) return;
    const double share = 1.0 / static_cast<double>(std::max(later, earlier));
    std::vector<double>& own = items[item];
    std::vector<double> moved(own);
    for (double& price : moved) price *= share;
    for (std::size_t e : grid_.edges_of[item]) {
      if ((grid_.edges[e].a == item) != to_later) continue;
      const Strides s = strides(e, item);
      for (std::size_t p = 0; p < own.size(); ++p) {
        double* row = edges[e].data() + p * s.own;
        for (std::size_t q = 0; q < s.others; ++q) row[q * s.other] += moved[p];
        own[p] -= moved[p];
      }
      least_edge_[e] = *std::min_element(edges[e].begin(), edges[e].end());
    }
    least_item_[item] = *std::min_element(own.begin(), own.end());
  }

  std::vector<std::vector<double>> items, edges;

 private:
  // Of an edge's matrix, seen from one of its items.
  struct Strides {
    std::size_t own, other, others;
  };
  Strides strides(std::size_t e, std::size_t item) const {
    const GridEdge& edge = grid_.edges[e];
    const std::size_t columns = grid_.items[edge.b].size();
    if (edge.a == item) return {columns, 1, columns};
    return {1, columns, grid_.items[edge.a].size()};
  }

  const Grid& grid_;
  std::vector<double> least_item_, least_edge_;
};

// Sweeps until the bound stands still; `least_with` is filled on the last way back, as totals.
void sweep(const Grid& grid, Prices& prices, std::vector<std::vector<double>>& least_with) {
  const std::size_t n = grid.items.size();
  double before = prices.bound();
  for (int round = 0; round < kMostSweeps; ++round) {
    for (std::size_t i = 0; i < n; ++i) {
      prices.collect(i);
      prices.distribute(i, true);
    }
    for (std::size_t i = n; i-- > 0;) {
      prices.collect(i);
      const double rest = prices.bound() - *std::min_element(prices.items[i].begin(), prices.items[i].end());
      for (std::size_t p = 0; p < prices.items[i].size(); ++p) least_with[i][p] = prices.items[i][p] + rest;
      prices.distribute(i, false);
    }
    const double after = prices.bound();
    if (after - before <= 1e-12 * std::abs(after)) break;
    before = after;
  }
}

}  // namespace

Lagrangian lagrangian(const Grid& grid, const std::vector<double>& multipliers) {
  Lagrangian out;
  double magnitude = 0;
  for (std::size_t b = 0; b < multipliers.size(); ++b) {
    const double share = multipliers[b] * static_cast<double>(grid.limits[b]);
    out.bound -= share;
    magnitude += std::abs(share);
  }
  Prices prices(grid, multipliers);
  for (const auto* group : {&prices.items, &prices.edges}) {
    for (const auto& of_one : *group) {
      magnitude = std::max(magnitude, *std::max_element(of_one.begin(), of_one.end()));
      magnitude += *std::min_element(of_one.begin(), of_one.end());
    }
  }
  out.least_with = prices.items;
  const double limits_share = out.bound;
  if (!grid.edges.empty()) sweep(grid, prices, out.least_with);
  for (auto* group : {&prices.items, &prices.edges}) {
    for (auto& of_one : *group) {
      const double least = *std::min_element(of_one.begin(), of_one.end());
      out.bound += least;
      magnitude += std::abs(least);
      for (double& price : of_one) price -= least;
    }
  }
  out.reduced = std::move(prices.items);
  out.reduced_edges = std::move(prices.edges);
  if (grid.edges.empty()) {
    out.least_with = out.reduced;
  } else {
    for (auto& of_item : out.least_with) {
      for (double& total : of_item) total = std::max(0.0, total + limits_share - out.bound);
    }
  }
  // A sum of n terms errs by at most n * 2^-53 of its largest partial sum; half a grid unit covers what is left.
  const double terms = static_cast<double>(grid.items.size() + 8 + grid.edges.size() * (4 * kMostSweeps));
  out.margin = 0.5 + magnitude * terms * 4.0 * 0x1p-53;
  return out;
}

std::vector<std::size_t> cheapest_by(const Grid& grid, const Lagrangian& bounds) {
  std::vector<std::size_t> positions(grid.items.size(), 0);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    std::vector<double> prices = bounds.reduced[i];
    for (std::size_t e : grid.edges_of[i]) {
      if (grid.edges[e].b != i) continue;
      const double* row = bounds.reduced_edges[e].data() + positions[grid.edges[e].a] * prices.size();
      for (std::size_t p = 0; p < prices.size(); ++p) prices[p] += row[p];
    }
    std::size_t best = 0;
    for (std::size_t p = 1; p < prices.size(); ++p) {
      if (prices[p] < prices[best]) best = p;
    }
    positions[i] = best;
  }
  return positions;
}

}  // namespace ctk::search
