// The search as a programme: a table of costs and limits in, schemes, reasons and prices out. No model is looked at, so
// that another budget is solved again from files.
#pragma once

#include <limits>
#include <optional>
#include <string_view>

#include "compress/search_table.h"
#include "search/solvers/solvers.h"

namespace ctk::pipeline::search_table {

// A figure for each budget in its unit: bytes, us, bytes, bits a weight. As limits: infinity where there is none.
struct Limits {
  double size = 0, latency = 0, peak = 0, bits = 0, decode = 0, prefill = 0;
};
inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();
inline constexpr Limits kNoLimits{kNoLimit, kNoLimit, kNoLimit, kNoLimit, kNoLimit, kNoLimit};

// The budgets of the programme, in its order.
struct BudgetRow {
  std::string_view name;  // as in the pipeline file
  const char* unit;
  double Limits::*of;
  exporter::Figure exporter::BudgetFigures::*figure;
  bool is_of_running;  // only networks that were planned and timed have it
};
inline constexpr BudgetRow kBudgets[] = {
    {"size", "B", &Limits::size, &exporter::BudgetFigures::size, false},
    {"latency", "us", &Limits::latency, &exporter::BudgetFigures::latency, true},
    {"peak_memory", "B", &Limits::peak, &exporter::BudgetFigures::peak_memory, true},
    {"bits", "bits", &Limits::bits, &exporter::BudgetFigures::bits, false},
    {"latency.decode", "us", &Limits::decode, &exporter::BudgetFigures::latency_decode, true},
    {"latency.prefill", "us", &Limits::prefill, &exporter::BudgetFigures::latency_prefill, true},
};
// Whether the table tells costs of a budget (a place in kBudgets).
bool has_costs(const Table& table, std::size_t budget);
// Its place in kBudgets. Errors: none; nullopt for another word.
std::optional<std::size_t> find_budget(std::string_view name);

// extra: what sums over layers were found to miss.
search::Problem make_problem(const Table& table, const Limits& limit, const Limits& extra);
quantization::SchemeMap to_schemes(const Table& table, const search::Assignment& answer);

// The same with another aim: least cost in one budget (a place in kBudgets), whose own limit falls away, while the loss
// stays within `most_loss`, the last budget.
search::Problem minimizing(const search::Problem& problem, std::size_t budget, double most_loss);

// Nats saved for each unit that a limit is raised, from solving again with a hundredth more; 0 where there is no limit.
Limits prices_of(const search::Solver& solver, const Table& table, const Limits& limit, const Limits& extra,
                 double loss);

// "w4a8_c would save 9.2 kB, 0.11 ms of latency and cost 0.0213 nats more; at the budgets' prices (0.0011 a kB, 0.05 a
// ms) that saves 0.0156 elsewhere": what the next smaller choice would have meant. Costs of budgets without a price,
// size apart, are left out.
std::string reason_for(const Table& table, const Group& group, const QuantScheme& chosen, const Limits& prices);

// Answers that could be the best one if scores were a little off, none like another or like `first`: the best with one
// scheme everywhere, one for losses a standard error higher, then for losses drawn within their errors (seeded), then
// the least loss without the choice of one group. At most `count`, with losses as the table has them. `extra` as for
// the first answer.
struct Alternative {
  search::Assignment answer;
  std::string origin;  // "losses one standard error up"
};
std::vector<Alternative> alternatives_to(const search::Assignment& first, const search::Solver& solver,
                                         const Table& table, const Limits& limit, const Limits& extra,
                                         std::size_t count, std::uint64_t seed);

}  // namespace ctk::pipeline::search_table
