#include "search/problem.h"

#include <array>
#include <charconv>
#include <cmath>

namespace ctk::search {
namespace {

std::string number(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 4).ptr;
  return {buffer, end};
}

Error at(const Item& item, const Choice& choice, const std::string& text) {
  return input_error("search: item \"" + item.name + "\", choice \"" + choice.name + "\": " + text);
}

Status check_edge(const Problem& problem, std::size_t index) {
  const Edge& edge = problem.edges[index];
  const std::string where = "search: edge " + std::to_string(index);
  const std::size_t items = problem.items.size();
  if (edge.a >= items || edge.b >= items || edge.a == edge.b) {
    return input_error(where + ": expected two different items below " + std::to_string(items) + ", found " +
                       std::to_string(edge.a) + " and " + std::to_string(edge.b) + ". Join items that exist");
  }
  const Item &a = problem.items[edge.a], &b = problem.items[edge.b];
  const std::string between = where + " between \"" + a.name + "\" and \"" + b.name + "\": ";
  for (const PairTerm& term : edge.terms) {
    if (term.choice_a >= a.choices.size() || term.choice_b >= b.choices.size()) {
      return input_error(between + "expected choices below " + std::to_string(a.choices.size()) + " and " +
                         std::to_string(b.choices.size()) + ", found " + std::to_string(term.choice_a) + " and " +
                         std::to_string(term.choice_b) + ". Drop terms of choices that are not offered");
    }
    const std::string pair =
        between + "\"" + a.choices[term.choice_a].name + "\" with \"" + b.choices[term.choice_b].name + "\": ";
    if (!std::isfinite(term.loss)) {
      return input_error(pair + "expected a finite loss, found " + number(term.loss) +
                         ". Measure this pair again or drop it");
    }
    if (!term.costs.empty() && term.costs.size() != problem.budgets.size()) {
      return input_error(pair + "expected no costs or " + std::to_string(problem.budgets.size()) +
                         ", one a budget, found " + std::to_string(term.costs.size()));
    }
    for (std::size_t c = 0; c < term.costs.size(); ++c) {
      if (std::isfinite(term.costs[c]) && term.costs[c] >= 0) continue;
      return input_error(pair + "expected a finite cost >= 0 for budget." + problem.budgets[c].name + ", found " +
                         number(term.costs[c]));
    }
  }
  return {};
}

}  // namespace

Status check_problem(const Problem& problem) {
  for (const Budget& budget : problem.budgets) {
    if (std::isnan(budget.limit) || !std::isfinite(budget.fixed) || budget.fixed < 0) {
      return input_error("search: budget." + budget.name + ": expected a limit and a fixed cost >= 0, found limit " +
                         number(budget.limit) + ", fixed cost " + number(budget.fixed));
    }
  }
  for (const Item& item : problem.items) {
    if (item.choices.empty()) {
      return input_error("search: item \"" + item.name +
                         "\": expected at least one choice, found none. Allow a scheme for it");
    }
    for (const Choice& choice : item.choices) {
      if (!std::isfinite(choice.loss)) {
        return at(item, choice,
                  "expected a finite loss, found " + number(choice.loss) + ". Score this choice again or drop it");
      }
      if (choice.costs.size() != problem.budgets.size()) {
        return at(item, choice,
                  "expected " + std::to_string(problem.budgets.size()) + " costs, one a budget, found " +
                      std::to_string(choice.costs.size()));
      }
      for (std::size_t b = 0; b < choice.costs.size(); ++b) {
        if (std::isfinite(choice.costs[b]) && choice.costs[b] >= 0) continue;
        return at(
            item, choice,
            "expected a finite cost >= 0 for budget." + problem.budgets[b].name + ", found " + number(choice.costs[b]));
      }
    }
  }
  for (std::size_t e = 0; e < problem.edges.size(); ++e) CTK_CHECK(check_edge(problem, e));
  return {};
}

Assignment total_of(const Problem& problem, std::vector<std::size_t> choices) {
  Assignment total;
  for (const Budget& budget : problem.budgets) total.costs.push_back(budget.fixed);
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const Choice& choice = problem.items[i].choices[choices[i]];
    total.loss += choice.loss;
    for (std::size_t b = 0; b < total.costs.size(); ++b) total.costs[b] += choice.costs[b];
  }
  for (const Edge& edge : problem.edges) {
    for (const PairTerm& term : edge.terms) {
      if (choices[edge.a] != term.choice_a || choices[edge.b] != term.choice_b) continue;
      total.loss += term.loss;
      for (std::size_t b = 0; b < term.costs.size(); ++b) total.costs[b] += term.costs[b];
    }
  }
  total.choices = std::move(choices);
  return total;
}

std::string format_amount(double amount, const std::string& unit) {
  struct Step {
    const char* unit;
    double size;
    const char* name;
  };
  static constexpr std::array<Step, 8> kSteps{{{"B", 1e9, "GB"},
                                               {"B", 1e6, "MB"},
                                               {"B", 1e3, "kB"},
                                               {"B", 1, "B"},
                                               {"us", 1e6, "s"},
                                               {"us", 1e3, "ms"},
                                               {"us", 1, "us"},
                                               {"us", 1e-3, "ns"}}};
  for (const Step& step : kSteps) {
    if (unit == step.unit && std::abs(amount) >= step.size) return number(amount / step.size) + " " + step.name;
  }
  return unit.empty() ? number(amount) : number(amount) + " " + unit;
}

}  // namespace ctk::search
