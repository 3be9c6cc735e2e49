// ILP: the multiple-choice knapsack as a 0-1 programme, solved by COIN-OR CBC and certified in whole numbers.
// Minimises: sum of the chosen losses, subject to sum of chosen costs <= limit in every budget, one choice an item.
// In:  a Problem. Out: an Assignment, the best by the tie rule of search/solvers/solvers.h.
// Method: 1. Whole-number grid; drop choices that another beats.
//         2. The linear relaxation gives multipliers; with them every choice has a reduced cost, and one whose reduced
//            cost exceeds (best loss - bound) can be in no best assignment. What is left is the core, mostly small.
//         3. CBC solves the core; its answer is checked in whole numbers.
//         4. An exact walk through the core confirms the loss and settles ties. Where the walk would be too long (many
//            identical items), CBC is asked for the least first cost at that loss, and ties beyond that are settled by
//            exchanging the choices of one or two items (with edges: of one): still the same answer on every run, but
//            "earlier choice" then holds against such exchanges only.
// With edges: bounds come from search/solvers/dual.h, and a core whose pairs are too many for CBC stays unproved; the
// best known is returned with its gap, as it is when CBC's nodes run out.
// Cost: one linear programme, one or two small 0-1 programmes; 200 items x 12 choices x 3 budgets 1 to 2 s.
// Source: core problems and reduced-cost fixing after Pisinger, "A minimal algorithm for the multiple-choice knapsack
// problem", 1995. Differs: several budgets, so bounds come from the linear relaxation and branching is left to CBC.
#include <algorithm>
#include <optional>

#include "search/infeasible.h"
#include "search/solvers/core_problem.h"
#include "search/solvers/moves.h"
#include "search/solvers/solvers.h"

namespace ctk::search {
namespace {

// Nodes of CBC; counts, not times, so that every run ends alike.
constexpr int kMaxNodes = 3000;                // for the loss: 200 items x 12 choices x 3 budgets in some 2 s
constexpr int kTieNodes = 100;                 // for the first cost at that loss
constexpr std::size_t kWalkSteps = 2'000'000;  // some 20 ms
constexpr std::size_t kFirstCoreExtra = 40;    // choices beyond one an item that the first core takes
// With edges: the same, and from how many pairs of choices on a core is left unproved.
constexpr std::size_t kFirstWithEdges = 60, kMostPairs = 250;
constexpr std::size_t kStartSteps = 20'000, kExchangeSteps = 300'000;  // looks at pairs of moves

// The smallest loss of each item, ties by first cost and order: best of all if it fits.
std::vector<std::size_t> unlimited_best(const Grid& grid) {
  std::vector<std::size_t> positions;
  for (const GridItem& item : grid.items) {
    std::size_t best = 0;
    for (std::size_t p = 1; p < item.size(); ++p) {
      const auto key = [&](std::size_t at) {
        return std::pair(item[at].loss, item[at].costs.empty() ? std::int64_t{0} : item[at].costs[0]);
      };
      if (key(p) < key(best)) best = p;
    }
    positions.push_back(best);
  }
  return positions;
}

// Limits no assignment reaches are lowered to what the items can cost, which keeps numbers in range; true when every
// budget can be met alone.
bool tighten_limits(Grid& grid) {
  for (std::size_t b = 0; b < grid.limits.size(); ++b) {
    const auto [least, most] = cost_range(grid, b);
    if (least > grid.limits[b]) return false;
    grid.limits[b] = std::min(grid.limits[b], most);
  }
  return true;
}

// Reduced cost up to which a core of `extra` choices beyond one an item reaches.
double slack_of(const Lagrangian& bounds, std::size_t extra) {
  std::vector<double> all;
  for (const auto& least : bounds.least_with) all.insert(all.end(), least.begin(), least.end());
  const std::size_t rank = std::min(all.size() - 1, bounds.least_with.size() + extra);
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank), all.end());
  return all[rank];
}

// Pairs of choices make a programme slow; without edges no core is too large.
bool is_too_large(const Grid& grid, const Core& core) {
  std::size_t pairs = 0;
  for (const GridEdge& edge : grid.edges) {
    if (core[edge.a].size() > 1 && core[edge.b].size() > 1) pairs += core[edge.a].size() * core[edge.b].size();
  }
  return pairs > kMostPairs;
}

struct Found {
  std::vector<std::size_t> positions;  // empty: no assignment exists
  std::int64_t bound = 0;
  bool is_proved = false;
};

// Least loss over all columns, by cores that grow until what is outside cannot matter. `start`: what is known, may be
// none.
Result<Found> least_loss(const Cbc& cbc, const Grid& grid, const Lagrangian& bounds,
                         std::optional<std::vector<std::size_t>> start) {
  const auto needed_by = [&](const std::vector<std::size_t>& positions) {
    return static_cast<double>(total_of(grid, positions).loss) - bounds.bound;
  };
  const auto stop_at = [&](std::vector<std::size_t> positions, double outside) {
    const std::int64_t loss = total_of(grid, positions).loss;
    const std::int64_t bound = static_cast<std::int64_t>(std::max(bounds.bound, outside) - bounds.margin);
    return Found{std::move(positions), std::min(loss, bound), false};
  };
  double slack = slack_of(bounds, grid.edges.empty() ? kFirstCoreExtra : kFirstWithEdges);
  if (start && !is_too_large(grid, core_of(bounds, needed_by(*start)))) slack = needed_by(*start);
  for (int round = 0;; ++round) {
    Core core = core_of(bounds, slack);
    const bool is_all = round > 4 || is_whole(core, grid);
    if (is_all) core = core_of(bounds, 1e300);
    if (start && is_too_large(grid, core)) return stop_at(std::move(*start), 0);
    CTK_TRY(const CoreAnswer answer, solve_core(cbc, grid, core, kMaxNodes));
    if (answer.positions.empty()) {
      if (is_all && answer.status == ctk_cbc_infeasible) return Found{};
      if (!start) start = best_repaired(grid, best_multipliers(grid), kExchangeSteps);
      if (start && (is_all || answer.status != ctk_cbc_infeasible)) return stop_at(std::move(*start), 0);
      if (is_all) {
        return config_error("search.solver: ilp found no assignment within " + std::to_string(kMaxNodes) +
                            " nodes. Loosen a budget or offer fewer schemes");
      }
      slack = start ? needed_by(*start) : slack * 8 + 1;
      continue;
    }
    const double needed = needed_by(answer.positions);
    if (!start || is_better(grid, answer.positions, *start)) start = answer.positions;
    if (!is_all && needed > slack && answer.status == ctk_cbc_optimal) {
      const double outside = bounds.bound + slack;
      slack = needed;  // any better assignment lies within this
      if (!is_too_large(grid, core_of(bounds, slack))) continue;
      return stop_at(std::move(*start), outside);
    }
    Found found{answer.positions, answer.bound, answer.status == ctk_cbc_optimal};
    if (!found.is_proved) {
      const double outside = is_all ? 1e300 : bounds.bound + slack - bounds.margin;
      const std::int64_t loss = total_of(grid, answer.positions).loss;
      found.bound = std::min({found.bound, loss, outside < 1e18 ? static_cast<std::int64_t>(outside) : loss});
      found.bound = std::max<std::int64_t>(found.bound, static_cast<std::int64_t>(bounds.bound - bounds.margin));
      if (is_better(grid, *start, found.positions)) found.positions = *start;
    }
    return found;
  }
}

}  // namespace

Result<Assignment> solve_ilp(const Problem& problem) {
  CTK_CHECK(check_problem(problem));
  Grid grid = make_grid(problem);
  drop_dominated(grid);
  if (grid.edges.empty()) {
    const std::vector<std::size_t> positions = unlimited_best(grid);
    if (total_of(grid, positions).is_within) return optimal_assignment(problem, grid, positions);
  } else if (Unlimited best = best_without_limits(grid, kWalkSteps);
             best.loss == best.bound && total_of(grid, best.positions).is_within) {
    if (!best.is_walked) exchange_ties(grid, best.positions);
    return optimal_assignment(problem, grid, best.positions);
  }
  if (grid.items.empty() || !tighten_limits(grid)) return explain_infeasible(problem, solve_ilp);

  CTK_TRY(const Cbc cbc, load_cbc());
  Lagrangian bounds;
  std::optional<std::vector<std::size_t>> start;
  if (grid.edges.empty()) {
    const Relaxation relaxation = relax(cbc, grid);
    if (relaxation.status == ctk_cbc_infeasible) return explain_infeasible(problem, solve_ilp);
    bounds = lagrangian(grid, relaxation.multipliers);
  } else {
    Dual dual = best_multipliers(grid);
    if (is_infeasible(grid, dual)) return explain_infeasible(problem, solve_ilp);
    start = best_repaired(grid, dual, kStartSteps);
    bounds = std::move(dual.bounds);
  }
  CTK_TRY(Found found, least_loss(cbc, grid, bounds, start));
  if (found.positions.empty()) return explain_infeasible(problem, solve_ilp);

  const std::int64_t loss = total_of(grid, found.positions).loss;
  const Core core = core_of(bounds, static_cast<double>(loss) - bounds.bound);
  const bool is_walked = walk_core(grid, bounds, core, kWalkSteps, found.positions);
  if (!is_walked && !grid.edges.empty()) {
    Moves moves(grid, found.positions);
    moves.exchange(kExchangeSteps);
    if (is_better(grid, moves.positions(), found.positions)) found.positions = moves.positions();
  } else if (!is_walked) {
    CTK_TRY(const CoreAnswer cheaper, solve_core(cbc, grid, core, kTieNodes, total_of(grid, found.positions).loss));
    if (!cheaper.positions.empty() && is_better(grid, cheaper.positions, found.positions))
      found.positions = cheaper.positions;
    exchange_ties(grid, found.positions);
  }
  Assignment best = optimal_assignment(problem, grid, found.positions);
  if (!is_walked && !found.is_proved) {
    best.proved_optimal = false;
    best.bound = std::min(best.loss, grid.loss_offset + grid.loss_unit * static_cast<double>(found.bound));
    best.gap = best.loss - best.bound;
  }
  return best;
}

}  // namespace ctk::search
