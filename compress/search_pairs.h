// Neighbours of few bits measured together: where errors of two layers add up or cancel, the sum of what each loses
// alone misleads, and the difference becomes a term of the programme (search::Problem::edges).
#pragma once

#include <functional>
#include <optional>

#include "compress/evaluate.h"
#include "compress/search_plan.h"

namespace ctk::pipeline::search_table {

// Groups next to each other: one's output reaches the other through nodes that are no layers, at most one of which
// joins two values, or both reach the same join so. By place in `groups`, the smaller first, in order.
std::vector<std::pair<std::size_t, std::size_t>> neighbours(const graph::Graph& graph,
                                                            const std::vector<Group>& groups);

class PairMeter {
 public:
  // `table.pairs` gets what is measured. At most stages.search.pairs pairs.
  PairMeter(const Session& session, Table& table);

  // Measures neighbours that both have at most 3 bits in `answer` and were not measured under these schemes, those
  // that can differ most from their sum first: twice the root of the product of their losses bounds it, to second
  // order. Where there are none, up to 8 that `answer` passed over: errors that cancel are found in no answer of sums.
  // Answers how many. Errors: those of evaluating on the score split.
  Result<std::size_t> measure(const search::Assignment& answer);

 private:
  struct Ranked;
  std::vector<Ranked> rank(const std::function<QuantScheme(std::size_t)>& scheme_of, std::size_t most) const;
  // KL of the score split with these groups alone coded; null: the first only.
  Result<double> loss_of(const Group& a, const QuantScheme& scheme_a, const Group* b, const QuantScheme& scheme_b);

  const Session& session_;
  Table& table_;
  std::vector<std::pair<std::size_t, std::size_t>> neighbours_;
  std::size_t left_;
  Costs alone_;
  std::optional<OutputCache> reference_;
};

}  // namespace ctk::pipeline::search_table
