#include "search/nearest.h"

#include <algorithm>
#include <cmath>

namespace ctk::search {
namespace {

// Loss saved a unit by the least of some raises that saves any. By solving again: at limits that only one answer keeps,
// multipliers of the relaxed problem are any numbers.
double price_above(const Problem& problem, std::size_t budget, double loss,
                   Result<Assignment> (*solve)(const Problem&)) {
  const double limit = problem.budgets[budget].limit;
  if (!std::isfinite(limit)) return 0;
  for (const double share : {0.01, 0.04, 0.16}) {
    Problem raised = problem;
    raised.budgets[budget].limit += share * std::abs(limit);
    const auto best = solve(raised);
    if (best && best->loss < loss) return (loss - best->loss) / (share * std::abs(limit));
  }
  return 0;
}

}  // namespace

Result<NearestFeasible> nearest_feasible(const Problem& problem, Result<Assignment> (*solve)(const Problem&)) {
  NearestFeasible out;
  CTK_TRY(out.reaches, reach_of(problem, solve));
  const std::size_t budgets = problem.budgets.size();
  Problem trial = problem;
  // The share that an assignment needs; limits of 0 rise by shares of what is reachable.
  const auto base_of = [&](std::size_t b) {
    return problem.budgets[b].limit > 0 ? problem.budgets[b].limit : std::max(1e-300, out.reaches[b].least_alone);
  };
  const auto raise = [&](double share) {
    for (std::size_t b = 0; b < budgets; ++b) {
      if (std::isfinite(problem.budgets[b].limit))
        trial.budgets[b].limit = problem.budgets[b].limit + share * base_of(b);
    }
  };
  const auto share_of = [&](const Assignment& found) {
    double share = 0;
    for (std::size_t b = 0; b < budgets; ++b) {
      if (std::isfinite(problem.budgets[b].limit))
        share = std::max(share, (found.costs[b] - problem.budgets[b].limit) / base_of(b));
    }
    return share;
  };
  auto found = solve(problem);
  if (!found && found.error().code != ErrorCode::budget_infeasible) return std::move(found).error();
  if (!found) {
    // No share below what each budget needs alone can do; what the sum of cheapest choices needs surely does.
    double low = 0, high = 1e-6;
    for (std::size_t b = 0; b < budgets; ++b) {
      if (std::isfinite(problem.budgets[b].limit))
        low = std::max(low, (out.reaches[b].least_alone - problem.budgets[b].limit) / base_of(b));
    }
    constexpr int kMostDoublings = 60, kHalvings = 20;
    for (int k = 0; !found && k < kMostDoublings; ++k, high *= 2) {
      raise(low + high);
      found = solve(trial);
      if (!found && found.error().code != ErrorCode::budget_infeasible) return std::move(found).error();
    }
    if (!found) return std::move(found).error();
    high = share_of(*found);
    for (int k = 0; k < kHalvings && high - low > 1e-4 * std::max(high, 1e-9); ++k) {
      raise(0.5 * (low + high));
      auto tighter = solve(trial);
      if (tighter) {
        high = std::min(high, share_of(*tighter));
      } else if (tighter.error().code == ErrorCode::budget_infeasible) {
        low = 0.5 * (low + high);
      } else {
        return std::move(tighter).error();
      }
    }
    out.share = high * (1 + 1e-9);
    raise(out.share);
    found = solve(trial);
    if (!found) return std::move(found).error();
    // One budget raised alone, where that is enough.
    for (std::size_t b = 0; b < budgets; ++b) {
      const auto& needed = out.reaches[b].least_with_others;
      if (!needed || !std::isfinite(problem.budgets[b].limit)) continue;
      Problem raised = problem;
      raised.budgets[b].limit = *needed * (1 + 1e-9);
      auto best = solve(raised);
      if (best) out.raise_one.push_back({problem.budgets[b].name, problem.budgets[b].limit, *needed, best->loss});
    }
  }
  for (const Budget& budget : trial.budgets) out.limits.push_back(budget.limit);
  out.answer = std::move(*found);
  for (std::size_t b = 0; b < budgets; ++b) out.prices.push_back(price_above(trial, b, out.answer.loss, solve));
  return out;
}

std::string describe(const NearestFeasible& nearest, const Problem& problem) {
  if (nearest.share <= 0) return "the limits can be met";
  std::string text;
  for (const Relief& relief : nearest.raise_one) {
    const auto budget = std::find_if(problem.budgets.begin(), problem.budgets.end(),
                                     [&](const Budget& other) { return other.name == relief.budget; });
    text += (text.empty() ? "" : "; ") + ("budget." + relief.budget) + " alone at " +
            format_amount(relief.needed, budget->unit) + " (asked " + format_amount(relief.limit, budget->unit) +
            ") allows a loss of " + format_amount(relief.loss, "");
  }
  text += (text.empty() ? "" : "; ") + std::string("all limits ") + format_amount(100 * nearest.share, "%") +
          " higher allow a loss of " + format_amount(nearest.answer.loss, "");
  for (std::size_t b = 0; b < nearest.prices.size(); ++b) {
    if (nearest.prices[b] <= 0) continue;
    const std::string& unit = problem.budgets[b].unit;
    text += ", where one more " + (unit.empty() ? "unit" : unit) + " of budget." + problem.budgets[b].name + " saves " +
            format_amount(nearest.prices[b], "");
  }
  return text;
}

}  // namespace ctk::search
