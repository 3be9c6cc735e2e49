// Builds the programmes for CBC and reads its answers with suspicion.
#include <algorithm>
#include <bit>
#include <cmath>

#include "search/solvers/core_problem.h"

namespace ctk::search {
namespace {

constexpr double kInfinity = 1e30;
constexpr int kMostCuts = 16;

// The power of two that brings sums up to `largest` below 2^24. A grid unit then stays above 2^-16 = 1.5e-5, well over
// the solver's tolerance of 1e-7 and its cutoff step of 1e-5, and no sum loses bits in a double.
double scale_for(std::int64_t largest) {
  const int bits = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(largest, 1)));
  return std::ldexp(1.0, -std::max(0, bits - 24));
}

struct Columns {
  std::vector<int> starts{0}, rows;
  std::vector<double> values, objective;
  void add(int row, double value) {
    rows.push_back(row);
    values.push_back(value);
  }
  void close(double cost) {
    objective.push_back(cost);
    starts.push_back(static_cast<int>(rows.size()));
  }
};

struct Scales {
  double loss = 1;
  std::vector<double> costs;  // [budgets]
};

Scales scales_of(const Grid& grid) {
  Scales scales;
  std::int64_t loss = 0;
  std::vector<std::int64_t> costs(grid.limits.size(), 0);
  for (const GridItem& item : grid.items) {
    std::int64_t most = 0;
    for (const GridChoice& choice : item) most = std::max(most, choice.loss);
    loss += most;
    for (std::size_t b = 0; b < costs.size(); ++b) {
      std::int64_t most_cost = 0;
      for (const GridChoice& choice : item) most_cost = std::max(most_cost, choice.costs[b]);
      costs[b] += most_cost;
    }
  }
  for (const GridEdge& edge : grid.edges) {
    loss += *std::max_element(edge.loss.begin(), edge.loss.end());
    for (std::size_t b = 0; b < costs.size(); ++b)
      costs[b] += *std::max_element(edge.costs[b].begin(), edge.costs[b].end());
  }
  scales.loss = scale_for(loss);
  for (std::int64_t cost : costs) scales.costs.push_back(scale_for(cost));
  return scales;
}

CtkCbcProblem view(const Columns& columns, const std::vector<double>& lower, const std::vector<double>& upper,
                   int max_nodes, std::size_t binary_columns) {
  return {static_cast<int>(columns.objective.size()),
          static_cast<int>(lower.size()),
          columns.starts.data(),
          columns.rows.data(),
          columns.values.data(),
          columns.objective.data(),
          lower.data(),
          upper.data(),
          max_nodes,
          static_cast<int>(binary_columns)};
}

// What a position of an open item, or a pair of them, adds to the programme.
struct Amounts {
  std::int64_t loss = 0;
  std::vector<std::int64_t> costs;  // [budgets]
  void add(const GridEdge& edge, std::size_t at) {
    loss += edge.loss[at];
    for (std::size_t b = 0; b < costs.size(); ++b) costs[b] += edge.costs[b][at];
  }
};

}  // namespace

Relaxation relax(const Cbc& cbc, const Grid& grid) {
  const Scales scales = scales_of(grid);
  const std::size_t budgets = grid.limits.size();
  Columns columns;
  std::vector<double> lower, upper;
  for (std::size_t b = 0; b < budgets; ++b) {
    lower.push_back(-kInfinity);
    upper.push_back(static_cast<double>(grid.limits[b]) * scales.costs[b]);
  }
  for (const GridItem& item : grid.items) {
    for (const GridChoice& choice : item) {
      for (std::size_t b = 0; b < budgets; ++b) {
        columns.add(static_cast<int>(b), static_cast<double>(choice.costs[b]) * scales.costs[b]);
      }
      columns.add(static_cast<int>(lower.size()), 1.0);
      columns.close(static_cast<double>(choice.loss) * scales.loss);
    }
    lower.push_back(1.0);
    upper.push_back(1.0);
  }
  const CtkCbcProblem problem = view(columns, lower, upper, 0, 0);
  std::vector<double> duals(lower.size(), 0.0);
  Relaxation out;
  out.status = static_cast<CtkCbcStatus>(cbc.solve_lp(&problem, duals.data()));
  for (std::size_t b = 0; b < budgets; ++b) {
    // A limit's dual is <= 0 in a minimum; any multiplier >= 0 gives a valid bound.
    const double multiplier = -duals[b] * scales.costs[b] / scales.loss;
    out.multipliers.push_back(std::isfinite(multiplier) ? std::max(0.0, multiplier) : 0.0);
  }
  return out;
}

Result<CoreAnswer> solve_core(const Cbc& cbc, const Grid& grid, const Core& core, int max_nodes,
                              std::int64_t loss_limit) {
  const Scales scales = scales_of(grid);
  const std::size_t budgets = grid.limits.size();
  // Items with one position left are constants.
  std::vector<std::size_t> positions(core.size(), 0), open;
  std::int64_t fixed_loss = 0, fixed_cost = 0;
  std::vector<std::int64_t> room = grid.limits;
  for (std::size_t i = 0; i < core.size(); ++i) {
    if (core[i].size() > 1) {
      open.push_back(i);
      continue;
    }
    positions[i] = core[i][0];
    const GridChoice& choice = grid.items[i][positions[i]];
    fixed_loss += choice.loss;
    if (budgets > 0) fixed_cost += choice.costs[0];
    for (std::size_t b = 0; b < budgets; ++b) room[b] -= choice.costs[b];
  }
  // Columns: the open positions, item after item; then pairs of two open items with an edge. An edge with one open end
  // adds to that item's columns, one with none to the constants.
  std::vector<std::vector<Amounts>> amounts;  // [open][core positions]
  for (std::size_t i : open) {
    auto& of_item = amounts.emplace_back();
    for (std::size_t p : core[i]) of_item.push_back({grid.items[i][p].loss, grid.items[i][p].costs});
  }
  constexpr std::size_t kClosed = static_cast<std::size_t>(-1);
  std::vector<std::size_t> slot(core.size(), kClosed);
  for (std::size_t k = 0; k < open.size(); ++k) slot[open[k]] = k;
  std::vector<std::size_t> open_edges;
  for (std::size_t e = 0; e < grid.edges.size(); ++e) {
    const GridEdge& edge = grid.edges[e];
    const std::size_t a = slot[edge.a], b = slot[edge.b];
    const GridChoice &at_a = grid.items[edge.a][positions[edge.a]], &at_b = grid.items[edge.b][positions[edge.b]];
    if (a != kClosed && b != kClosed) {
      open_edges.push_back(e);
    } else if (a != kClosed) {
      for (std::size_t k = 0; k < amounts[a].size(); ++k)
        amounts[a][k].add(edge, edge.at(grid.items[edge.a][core[edge.a][k]], at_b));
    } else if (b != kClosed) {
      for (std::size_t k = 0; k < amounts[b].size(); ++k)
        amounts[b][k].add(edge, edge.at(at_a, grid.items[edge.b][core[edge.b][k]]));
    } else {
      const std::size_t at = edge.at(at_a, at_b);
      fixed_loss += edge.loss[at];
      if (budgets > 0) fixed_cost += edge.costs[0][at];
      for (std::size_t c = 0; c < budgets; ++c) room[c] -= edge.costs[c][at];
    }
  }
  const bool by_cost = loss_limit >= 0;
  std::vector<double> lower, upper;
  for (std::size_t b = 0; b < budgets; ++b) {
    lower.push_back(-kInfinity);
    upper.push_back(static_cast<double>(room[b]) * scales.costs[b]);
  }
  if (by_cost) {
    lower.push_back(-kInfinity);
    upper.push_back(static_cast<double>(loss_limit - fixed_loss) * scales.loss);
  }
  const std::size_t first_item_row = lower.size();
  lower.insert(lower.end(), open.size(), 1.0);
  upper.insert(upper.end(), open.size(), 1.0);
  const std::size_t first_edge_row = lower.size();
  std::vector<std::vector<std::size_t>> edge_rows(open.size());  // [open], first row of the item on each open edge
  std::size_t edge_row_count = 0;
  for (std::size_t e : open_edges) {
    for (std::size_t item : {grid.edges[e].a, grid.edges[e].b}) {
      edge_rows[slot[item]].push_back(first_edge_row + edge_row_count);
      edge_row_count += core[item].size();
    }
  }
  lower.insert(lower.end(), edge_row_count, 0.0);
  upper.insert(upper.end(), edge_row_count, 0.0);
  const std::size_t first_cut_row = lower.size();

  CoreAnswer answer;
  std::vector<std::vector<std::size_t>> cut_off;  // assignments CBC proposed that break a limit
  for (int round = 0; round <= kMostCuts; ++round) {
    Columns columns;
    const auto add_amounts = [&](const Amounts& amount) {
      for (std::size_t b = 0; b < budgets; ++b) {
        columns.add(static_cast<int>(b), static_cast<double>(amount.costs[b]) * scales.costs[b]);
      }
      if (by_cost) columns.add(static_cast<int>(budgets), static_cast<double>(amount.loss) * scales.loss);
    };
    const auto close = [&](const Amounts& amount) {
      columns.close(by_cost ? static_cast<double>(amount.costs[0]) * scales.costs[0]
                            : static_cast<double>(amount.loss) * scales.loss);
    };
    for (std::size_t k = 0; k < open.size(); ++k) {
      for (std::size_t at = 0; at < core[open[k]].size(); ++at) {
        add_amounts(amounts[k][at]);
        columns.add(static_cast<int>(first_item_row + k), 1.0);
        for (std::size_t row : edge_rows[k]) columns.add(static_cast<int>(row + at), -1.0);
        for (std::size_t c = 0; c < cut_off.size(); ++c) {
          if (cut_off[c][open[k]] == core[open[k]][at]) columns.add(static_cast<int>(first_cut_row + c), 1.0);
        }
        close(amounts[k][at]);
      }
    }
    const std::size_t binary_columns = columns.objective.size();
    std::size_t row = first_edge_row;
    for (std::size_t e : open_edges) {
      const GridEdge& edge = grid.edges[e];
      const std::size_t row_b = row + core[edge.a].size();
      for (std::size_t p = 0; p < core[edge.a].size(); ++p) {
        for (std::size_t q = 0; q < core[edge.b].size(); ++q) {
          Amounts pair{0, std::vector<std::int64_t>(budgets, 0)};
          pair.add(edge, edge.at(grid.items[edge.a][core[edge.a][p]], grid.items[edge.b][core[edge.b][q]]));
          add_amounts(pair);
          columns.add(static_cast<int>(row + p), 1.0);
          columns.add(static_cast<int>(row_b + q), 1.0);
          close(pair);
        }
      }
      row = row_b + core[edge.b].size();
    }
    const CtkCbcProblem problem = view(columns, lower, upper, max_nodes, binary_columns);
    std::vector<double> x(columns.objective.size(), 0.0);
    double bound = 0;
    int has_solution = 1;
    if (open.empty()) {
      answer.status = round == 0 ? ctk_cbc_optimal : ctk_cbc_infeasible;
    } else {
      answer.status = static_cast<CtkCbcStatus>(cbc.solve_binary(&problem, x.data(), &bound, &has_solution));
    }
    if (answer.status == ctk_cbc_failed) return internal_error("search: CBC gave up on a programme without a reason");
    answer.positions.clear();
    if (answer.status == ctk_cbc_infeasible || has_solution == 0) return answer;
    std::size_t column = 0;
    for (std::size_t i : open) {
      double most = -1;
      for (std::size_t p : core[i]) {
        if (x[column] > most) {
          most = x[column];
          positions[i] = p;
        }
        ++column;
      }
    }
    const GridTotal total = total_of(grid, positions);
    if (total.is_within && (!by_cost || total.loss <= loss_limit)) {
      answer.positions = positions;
      const double value = by_cost ? static_cast<double>(fixed_cost) : static_cast<double>(fixed_loss);
      const double unit = by_cost ? scales.costs[0] : scales.loss;
      const std::int64_t reached = by_cost ? total.costs[0] : total.loss;
      answer.bound = answer.status == ctk_cbc_optimal
                         ? reached
                         : std::min(reached, static_cast<std::int64_t>(std::floor(bound / unit + value)));
      return answer;
    }
    cut_off.push_back(positions);
    lower.push_back(-kInfinity);
    upper.push_back(static_cast<double>(open.size()) - 1.0);
  }
  return internal_error("search: CBC keeps proposing assignments that break a budget");
}

}  // namespace ctk::search
