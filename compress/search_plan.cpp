#include "compress/search_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

namespace ctk::pipeline::search_table {
namespace {

// Every pair of choices of two groups that changes between codes and floats costs what the border takes.
std::optional<search::Edge> edge_of(const search::Problem& problem, const Table& table, const Border& border) {
  const auto place = [&](const std::string& layer) {
    return std::ranges::find(problem.items, layer, &search::Item::name) - problem.items.begin();
  };
  const auto a = static_cast<std::size_t>(place(border.first)), b = static_cast<std::size_t>(place(border.second));
  if (a == problem.items.size() || b == problem.items.size()) return std::nullopt;  // an edit took the layer away
  search::Edge edge{a, b, {}};
  for (std::size_t i = 0; i < table.groups[a].choices.size(); ++i) {
    for (std::size_t j = 0; j < table.groups[b].choices.size(); ++j) {
      const bool from_codes = table.groups[a].choices[i].is_integer_activation();
      const double us = from_codes ? border.to_floats_us : border.to_codes_us;
      if (from_codes == table.groups[b].choices[j].is_integer_activation() || us <= 0) continue;
      std::vector<double> costs(std::size(kBudgets));
      costs[*find_budget("latency")] = us;
      edge.terms.push_back({i, j, 0, std::move(costs)});
    }
  }
  if (edge.terms.empty()) return std::nullopt;
  return edge;
}

std::string digits(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// (item, choice) of a scheme of the group with this first layer.
std::optional<std::pair<std::size_t, std::size_t>> place_of(const search::Problem& problem, const std::string& layer,
                                                            const std::string& scheme) {
  const auto item = std::ranges::find(problem.items, layer, &search::Item::name);
  if (item == problem.items.end()) return std::nullopt;
  const auto choice = std::ranges::find(item->choices, scheme, &search::Choice::name);
  if (choice == item->choices.end()) return std::nullopt;
  return std::pair(static_cast<std::size_t>(item - problem.items.begin()),
                   static_cast<std::size_t>(choice - item->choices.begin()));
}

}  // namespace

std::optional<std::size_t> find_budget(std::string_view name) {
  for (std::size_t b = 0; b < std::size(kBudgets); ++b) {
    if (kBudgets[b].name == name) return b;
  }
  return std::nullopt;
}

bool has_costs(const Table& table, std::size_t budget) {
  const BudgetRow& row = kBudgets[budget];
  if (!row.is_of_running) return true;
  if (row.of == &Limits::decode) return !table.decode.us.empty();
  if (row.of == &Limits::prefill) return !table.prefill.us.empty();
  return !table.latency_us.empty();
}

search::Problem make_problem(const Table& table, const Limits& limit, const Limits& extra) {
  const Limits fixed{table.base_bytes + extra.size,
                     std::max(0.0, table.base_us + extra.latency),
                     table.base_peak + extra.peak,
                     extra.bits,
                     std::max(0.0, table.decode.base_us + extra.decode),
                     std::max(0.0, table.prefill.base_us + extra.prefill)};
  search::Problem problem;
  for (const BudgetRow& budget : kBudgets)
    problem.budgets.push_back({std::string(budget.name), limit.*budget.of, fixed.*budget.of, budget.unit});
  for (const Group& group : table.groups) {
    search::Item item;
    item.name = group.layers[0];
    for (const QuantScheme& scheme : group.choices) {
      item.choices.push_back(
          {to_string(scheme),
           group_cost(table.loss, group, scheme, true),
           {group_cost(table.bytes, group, scheme, false), group_cost(table.latency_us, group, scheme, true),
            group_cost(table.packed, group, scheme, true), group_cost(table.bits, group, scheme, false),
            group_cost(table.decode.us, group, scheme, true), group_cost(table.prefill.us, group, scheme, true)}});
    }
    problem.items.push_back(std::move(item));
  }
  for (const PairLoss& pair : table.pairs) {
    const auto first = place_of(problem, pair.first, pair.first_scheme);
    const auto second = place_of(problem, pair.second, pair.second_scheme);
    if (!first || !second) continue;  // a choice that an edit took away
    problem.edges.push_back({first->first, second->first, {{first->second, second->second, pair.loss(), {}}}});
  }
  for (const Border& border : table.borders) {
    if (auto edge = edge_of(problem, table, border)) problem.edges.push_back(std::move(*edge));
  }
  return problem;
}

search::Problem minimizing(const search::Problem& problem, std::size_t budget, double most_loss) {
  search::Problem other = problem;
  other.budgets[budget].limit = std::numeric_limits<double>::infinity();
  other.budgets.push_back({"loss", most_loss, 0, "nats"});
  for (search::Item& item : other.items) {
    for (search::Choice& choice : item.choices) {
      choice.costs.push_back(std::max(0.0, choice.loss));
      choice.loss = choice.costs[budget];
    }
  }
  for (search::Edge& edge : other.edges) {
    for (search::PairTerm& term : edge.terms) {
      term.costs.resize(problem.budgets.size());
      term.costs.push_back(std::max(0.0, term.loss));  // what two lose less than their sum is not counted on
      term.loss = term.costs[budget];
    }
  }
  return other;
}

quantization::SchemeMap to_schemes(const Table& table, const search::Assignment& answer) {
  quantization::SchemeMap schemes;
  for (std::size_t g = 0; g < table.groups.size(); ++g) {
    for (const std::string& layer : table.groups[g].layers) schemes[layer] = table.groups[g].choices[answer.choices[g]];
  }
  return schemes;
}

Limits prices_of(const search::Solver& solver, const Table& table, const Limits& limit, const Limits& extra,
                 double loss) {
  Limits prices;
  const auto price = [&](double Limits::*which) {
    const double more = 0.01 * (limit.*which);
    if (!std::isfinite(more) || more <= 0) return;
    Limits raised = limit;
    raised.*which += more;
    if (const auto answer = solver.solve(make_problem(table, raised, extra)))
      prices.*which = std::max(0.0, loss - answer->loss) / more;
  };
  for (const BudgetRow& budget : kBudgets) price(budget.of);
  return prices;
}

std::string reason_for(const Table& table, const Group& group, const QuantScheme& chosen, const Limits& prices) {
  const auto bytes_of = [&](const QuantScheme& scheme) { return group_cost(table.bytes, group, scheme, false); };
  const double bytes = bytes_of(chosen), loss = group_cost(table.loss, group, chosen, true);
  const QuantScheme* next = nullptr;
  for (const QuantScheme& other : group.choices) {
    if (bytes_of(other) < bytes && (next == nullptr || bytes_of(other) > bytes_of(*next))) next = &other;
  }
  std::string mates;
  for (const std::string& layer : group.layers) mates += (mates.empty() ? "" : ", ") + layer;
  const std::string shares = group.layers.size() > 1 ? "; one scheme for all that " + group.tie + ": " + mates : "";
  if (group.choices.size() == 1) return "the only scheme it can take" + shares;
  if (next == nullptr) return "the smallest choice; it costs " + digits(loss) + " nats alone" + shares;
  const double more = group_cost(table.loss, group, *next, true) - loss;
  // What the next smaller choice would give back, and what the budgets pay for that.
  const Limits saved{
      bytes - bytes_of(*next),
      group_cost(table.latency_us, group, chosen, true) - group_cost(table.latency_us, group, *next, true),
      group_cost(table.packed, group, chosen, true) - group_cost(table.packed, group, *next, true),
      group_cost(table.bits, group, chosen, false) - group_cost(table.bits, group, *next, false),
      group_cost(table.decode.us, group, chosen, true) - group_cost(table.decode.us, group, *next, true),
      group_cost(table.prefill.us, group, chosen, true) - group_cost(table.prefill.us, group, *next, true)};
  std::string gives, paid;
  double worth = 0;
  for (const BudgetRow& budget : kBudgets) {
    const double amount = saved.*budget.of, price = prices.*budget.of;
    const bool is_told = budget.of == &Limits::size || price > 0;
    if (!is_told || amount == 0) continue;
    gives += (gives.empty() ? "" : ", ") + search::format_amount(amount, budget.unit) +
             (budget.of == &Limits::size ? "" : " of " + std::string(budget.name));
    if (price <= 0) continue;
    worth += price * amount;
    const std::string unit = budget.unit;
    const auto [step, name] = unit == "B"    ? std::pair(1000.0, "a kB")
                              : unit == "us" ? std::pair(1000.0, "a ms")
                                             : std::pair(1.0, "a bit");
    paid += (paid.empty() ? "" : ", ") + digits(step * price) + " " + name +
            (budget.of == &Limits::peak      ? " of memory"
             : budget.of == &Limits::decode  ? " of decode"
             : budget.of == &Limits::prefill ? " of prefill"
                                             : "");
  }
  std::string reason = to_string(*next) + " would save " + gives + " and cost " + digits(more) + " nats more";
  if (!paid.empty()) reason += "; at the budgets' prices (" + paid + ") that saves " + digits(worth) + " elsewhere";
  return reason + shares;
}

}  // namespace ctk::pipeline::search_table
