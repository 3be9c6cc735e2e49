#include "compress/search_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ctk::pipeline::search_table {

search::Problem make_problem(const Table& table, const Limits& limit, const Limits& extra) {
  search::Problem problem;
  problem.budgets.push_back({"size", limit.size, table.base_bytes + extra.size, "B"});
  problem.budgets.push_back({"latency", limit.latency, std::max(0.0, table.base_us + extra.latency), "us"});
  problem.budgets.push_back({"peak_memory", limit.peak, table.base_peak + extra.peak, "B"});
  for (const Group& group : table.groups) {
    search::Item item;
    item.name = group.layers[0];
    for (const QuantScheme& scheme : group.choices) {
      item.choices.push_back(
          {to_string(scheme),
           group_cost(table.loss, group, scheme, true),
           {group_cost(table.bytes, group, scheme, false), group_cost(table.latency_us, group, scheme, true),
            group_cost(table.packed, group, scheme, true)}});
    }
    problem.items.push_back(std::move(item));
  }
  return problem;
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
  price(&Limits::size);
  price(&Limits::latency);
  price(&Limits::peak);
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
  char text[240];
  if (next == nullptr) {
    std::snprintf(text, sizeof text, "the smallest choice; it costs %.4g nats alone", loss);
    return text + shares;
  }
  const double saved = (bytes - bytes_of(*next)) / 1000.0, more = group_cost(table.loss, group, *next, true) - loss;
  std::snprintf(text, sizeof text, "%s would save %.1f kB and cost %.4g nats more", to_string(*next).c_str(), saved,
                more);
  std::string reason = text;
  if (prices.size > 0 && saved > 0) {
    std::snprintf(text, sizeof text, " (%.3g a kB; the budget's price is %.3g)", more / saved, 1000 * prices.size);
    reason += text;
  }
  return reason + shares;
}

}  // namespace ctk::pipeline::search_table
