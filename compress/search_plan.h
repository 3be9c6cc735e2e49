// The search as a programme: a table of costs and limits in, schemes, reasons and prices out. No model is looked at, so
// that another budget is solved again from files.
#pragma once

#include "compress/search_table.h"
#include "search/solvers/solvers.h"

namespace ctk::pipeline::search_table {

// A figure for each budget in its unit: bytes, us, bytes. As limits: infinity where there is none.
struct Limits {
  double size = 0, latency = 0, peak = 0;
};

// extra: what sums over layers were found to miss.
search::Problem make_problem(const Table& table, const Limits& limit, const Limits& extra);
quantization::SchemeMap to_schemes(const Table& table, const search::Assignment& answer);

// Nats saved for each unit that a limit is raised, from solving again with a hundredth more; 0 where there is no limit.
Limits prices_of(const search::Solver& solver, const Table& table, const Limits& limit, const Limits& extra,
                 double loss);

// "w4a8_c would save 9.2 kB and cost 0.0213 nats more (0.0023 a kB; the budget's price is 0.0011)": what the next
// smaller choice would have meant.
std::string reason_for(const Table& table, const Group& group, const QuantScheme& chosen, const Limits& prices);

// Answers that could be the best one if scores were a little off, none like another or like `first`: one for losses a
// standard error higher, then for losses drawn within their errors (seeded), then the least loss without the choice of
// one group. At most `count`, with losses as the table has them. `extra` as for the first answer.
struct Alternative {
  search::Assignment answer;
  std::string origin;  // "losses one standard error up"
};
std::vector<Alternative> alternatives_to(const search::Assignment& first, const search::Solver& solver,
                                         const Table& table, const Limits& limit, const Limits& extra,
                                         std::size_t count, std::uint64_t seed);

}  // namespace ctk::pipeline::search_table
