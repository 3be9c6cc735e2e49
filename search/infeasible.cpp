#include "search/infeasible.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "search/grid.h"
#include "search/solvers/core_problem.h"

namespace ctk::search {
namespace {

using Solve = Result<Assignment> (*)(const Problem&);

constexpr std::size_t kHoldersShown = 5;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::size_t cheapest(const Item& item, std::size_t budget) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < item.choices.size(); ++c) {
    if (item.choices[c].costs[budget] < item.choices[best].costs[budget]) best = c;
  }
  return best;
}

// The cost of one budget becomes the loss, its limit falls away.
Problem minimize_cost(const Problem& problem, std::size_t budget) {
  Problem other = problem;
  for (Item& item : other.items) {
    for (Choice& choice : item.choices) choice.loss = choice.costs[budget];
  }
  for (Edge& edge : other.edges) {
    for (PairTerm& term : edge.terms) term.loss = term.costs.empty() ? 0 : term.costs[budget];
  }
  other.budgets[budget].limit = kNoLimit;
  return other;
}

// The assignment of least cost in one budget, all limits aside: each item's cheapest, or what a walk finds where edges
// cost something too.
struct Cheapest {
  std::vector<std::size_t> choices;
  bool is_proved = true;
};
Cheapest cheapest_of_all(const Problem& problem, std::size_t budget) {
  Cheapest found;
  if (problem.edges.empty()) {
    for (const Item& item : problem.items) found.choices.push_back(cheapest(item, budget));
    return found;
  }
  constexpr std::size_t kSteps = 2'000'000;
  Problem other = minimize_cost(problem, budget);
  other.budgets.clear();
  for (Item& item : other.items) {
    for (Choice& choice : item.choices) choice.costs.clear();
  }
  for (Edge& edge : other.edges) {
    for (PairTerm& term : edge.terms) term.costs.clear();
  }
  Unlimited best = best_without_limits(make_grid(other), kSteps);
  return {std::move(best.positions), best.bound == best.loss};
}

// "all items at w4a8_c" when one choice name is everybody's cheapest.
std::string how_reached(const Reach& reach) {
  if (reach.holders.empty()) return "fixed costs alone";
  const bool is_same = std::all_of(reach.holders.begin(), reach.holders.end(),
                                   [&](const Holder& holder) { return holder.choice == reach.holders[0].choice; });
  return is_same ? "all layers at " + reach.holders[0].choice : "each layer at its cheapest scheme";
}

// Limit and reached amount as text; where rounding would make them look equal, all digits.
std::pair<std::string, std::string> told_apart(double limit, double reached, const std::string& unit) {
  std::string a = format_amount(limit, unit), b = format_amount(reached, unit);
  if (a != b) return {a, b};
  const auto exact = [&](double amount) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof digits, amount).ptr;
    return std::string(digits, end) + (unit.empty() ? "" : " " + unit);
  };
  return {exact(limit), exact(reached)};
}

std::string held_by(const Reach& reach, const std::string& unit) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kHoldersShown, reach.holders.size()); ++i) {
    if (reach.holders[i].cost <= 0) break;
    text +=
        (text.empty() ? "; held by " : ", ") + reach.holders[i].item + " " + format_amount(reach.holders[i].cost, unit);
  }
  if (!text.empty() && reach.holders.size() > kHoldersShown) {
    text += " and " + std::to_string(reach.holders.size() - kHoldersShown) + " more";
  }
  return text;
}

}  // namespace

Result<std::vector<Reach>> reach_of(const Problem& problem, Solve solve) {
  CTK_CHECK(check_problem(problem));
  const Grid grid = make_grid(problem);
  std::vector<Reach> reaches;
  for (std::size_t b = 0; b < problem.budgets.size(); ++b) {
    const Budget& budget = problem.budgets[b];
    Reach& reach = reaches.emplace_back();
    reach.budget = budget.name;
    reach.limit = budget.limit;
    const auto [choices, is_proved] = cheapest_of_all(problem, b);
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      const Choice& choice = problem.items[i].choices[choices[i]];
      reach.holders.push_back({problem.items[i].name, choice.name, choice.costs[b]});
    }
    reach.least_alone = total_of(problem, choices).costs[b];
    reach.is_reachable = !is_proved || total_of(grid, choices).costs[b] <= grid.limits[b];
    std::stable_sort(reach.holders.begin(), reach.holders.end(),
                     [](const Holder& a, const Holder& c) { return a.cost > c.cost; });
  }
  for (std::size_t b = 0; b < reaches.size(); ++b) {
    bool others_reachable = true;
    for (std::size_t o = 0; o < reaches.size(); ++o)
      others_reachable = others_reachable && (o == b || reaches[o].is_reachable);
    if (reaches.size() == 1) {
      reaches[b].least_with_others = reaches[b].least_alone;
    } else if (others_reachable && solve != nullptr && problem.budgets[b].limit != kNoLimit) {
      // A failure of the others explains itself by coming back here, with one finite limit fewer each time.
      auto found = solve(minimize_cost(problem, b));
      if (found) {
        reaches[b].least_with_others = found->costs[b];
      } else if (found.error().code != ErrorCode::budget_infeasible) {
        return std::move(found).error();
      }
    }
  }
  return reaches;
}

Error explain_infeasible(const Problem& problem, Solve solve) {
  const auto infeasible = [](std::string message) { return Error{ErrorCode::budget_infeasible, std::move(message)}; };
  auto reaches = reach_of(problem, nullptr);
  if (!reaches) return std::move(reaches).error();
  for (std::size_t b = 0; b < reaches->size(); ++b) {
    const Reach& reach = (*reaches)[b];
    if (reach.is_reachable) continue;
    const std::string& unit = problem.budgets[b].unit;
    const auto [limit, reached] = told_apart(reach.limit, reach.least_alone, unit);
    return infeasible("budget." + reach.budget + ": expected at most " + limit + ", smallest reachable is " + reached +
                      " (" + how_reached(reach) + ")" + held_by(reach, unit) +
                      "; raise the budget or allow smaller schemes");
  }
  // Each can be met alone: say how far one gets while the others hold.
  reaches = reach_of(problem, solve);
  if (!reaches) return std::move(reaches).error();
  std::string names, details;
  for (std::size_t b = 0; b < reaches->size(); ++b) {
    const Reach& reach = (*reaches)[b];
    if (reach.limit == kNoLimit) continue;
    const std::string& unit = problem.budgets[b].unit;
    names += (names.empty() ? "budget." : ", budget.") + reach.budget;
    if (!reach.least_with_others) continue;
    const auto [limit, reached] = told_apart(reach.limit, *reach.least_with_others, unit);
    details += "; while the others hold, smallest reachable " + reach.budget + " is " + reached +
               ", expected at most " + limit;
  }
  return infeasible(names + ": each can be met alone, but not together" + details +
                    "; raise one of these budgets or allow smaller schemes");
}

Status check_feasible(const Problem& problem, Solve solve) {
  CTK_TRY(const std::vector<Reach> reaches, reach_of(problem, nullptr));
  bool all_reachable = true;
  std::size_t finite = 0;
  for (const Reach& reach : reaches) {
    all_reachable = all_reachable && reach.is_reachable;
    finite += reach.limit != kNoLimit;
  }
  if (!all_reachable) return explain_infeasible(problem, solve);
  if (finite < 2 || solve == nullptr) return {};
  Problem without_losses = problem;
  for (Item& item : without_losses.items) {
    for (Choice& choice : item.choices) choice.loss = 0;
  }
  for (Edge& edge : without_losses.edges) {
    for (PairTerm& term : edge.terms) term.loss = 0;
  }
  CTK_CHECK(solve(without_losses));
  return {};
}

}  // namespace ctk::search
