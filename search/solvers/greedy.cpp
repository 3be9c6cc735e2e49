// Greedy: every item at its least loss, then the cheapest steps down until the budgets hold, then steps up that still
// fit, then precision changes between neighbours removed where that gains.
// Minimises: sum of losses, step by step: loss for each unit of budget excess (down), for each unit of cost (up).
// In:  a Problem. Out: an Assignment; bound and gap from search/solvers/dual.h say how good it is.
// Cost: steps x items x choices; the last phase once more for each edge that costs something.
// Source: the usual greedy of mixed precision; the last phase after AIMET's AMP, which merges islands of one precision.
// Differs: several budgets, weighed by their spreads; a merge is kept only if it gains after what it frees is spent.
#include <algorithm>

#include "search/infeasible.h"
#include "search/solvers/core_problem.h"
#include "search/solvers/moves.h"
#include "search/solvers/solvers.h"

namespace ctk::search {
namespace {

bool costs_something(const GridEdge& edge, std::size_t at) {
  for (const auto& costs : edge.costs) {
    if (costs[at] > 0) return true;
  }
  return edge.loss[at] > *std::min_element(edge.loss.begin(), edge.loss.end());
}

// Items that hang together with `first` by edges and have a choice of the same name.
std::vector<std::size_t> island_of(const Problem& problem, const Grid& grid, const std::vector<std::size_t>& choices,
                                   std::size_t first) {
  const auto name_of = [&](std::size_t item) -> const std::string& {
    return problem.items[item].choices[choices[item]].name;
  };
  std::vector<std::size_t> island{first};
  std::vector<bool> is_in(choices.size(), false);
  is_in[first] = true;
  for (std::size_t k = 0; k < island.size(); ++k) {
    for (std::size_t e : grid.edges_of[island[k]]) {
      const std::size_t other = grid.edges[e].a == island[k] ? grid.edges[e].b : grid.edges[e].a;
      if (is_in[other] || name_of(other) != name_of(first)) continue;
      is_in[other] = true;
      island.push_back(other);
    }
  }
  return island;
}

// Islands take the choice of a neighbour across an edge that costs something, as long as that gains.
void merge_islands(const Problem& problem, const Grid& grid, Moves& moves) {
  for (bool is_merged = true; is_merged;) {
    is_merged = false;
    for (const GridEdge& edge : grid.edges) {
      for (const auto& [from, to] : {std::pair(edge.a, edge.b), std::pair(edge.b, edge.a)}) {
        const std::vector<std::size_t>& now = moves.positions();
        if (!costs_something(edge, edge.at(grid.items[edge.a][now[edge.a]], grid.items[edge.b][now[edge.b]]))) continue;
        const std::string& name = problem.items[to].choices[now[to]].name;
        Moves trial = moves;
        for (std::size_t item : island_of(problem, grid, now, from)) {
          const auto& choices = problem.items[item].choices;
          for (std::size_t c = 0; c < choices.size(); ++c) {
            if (choices[c].name == name) trial.apply(item, c);
          }
        }
        if (trial.positions() == now || !trial.repair()) continue;
        trial.descend();
        if (!is_better(grid, trial.positions(), now)) continue;
        moves = trial;
        is_merged = true;
      }
    }
  }
}

}  // namespace

Result<Assignment> solve_greedy(const Problem& problem) {
  CTK_CHECK(check_problem(problem));
  const Grid grid = make_grid(problem);
  const Dual dual = best_multipliers(grid);
  if (is_infeasible(grid, dual)) return explain_infeasible(problem, solve_ilp);
  Moves moves(grid, dual.seen[0]);  // the least loss of all, limits aside
  if (!moves.repair()) {
    auto start = best_repaired(grid, dual, 0);
    if (!start) {
      CTK_TRY(start, any_feasible(problem));
    }
    moves = Moves(grid, std::move(*start));
  }
  moves.descend();
  merge_islands(problem, grid, moves);
  std::vector<std::size_t> best = moves.positions();
  exchange_ties(grid, best);
  return bounded_assignment(problem, grid, best, dual.bounds.bound - dual.bounds.margin);
}

}  // namespace ctk::search
