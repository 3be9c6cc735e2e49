#include "compress/search_plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace ctk::pipeline::search_table {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

QuantScheme scheme(const char* text) {
  return parse_scheme(text).value();
}

// Three layers, 100 bytes at 8 bits and 50 at 4. Losses at 8 bits are 0, at 4 bits 1, 2 and 4, all off by 1.
Table three_layers() {
  Table table;
  double loss = 1;
  for (const char* layer : {"a", "b", "c"}) {
    table.groups.push_back({{layer}, {scheme("w8a8_c"), scheme("w4a8_c")}, ""});
    table.loss[{layer, "w8a8_c"}] = 0;
    table.loss[{layer, "w4a8_c"}] = loss;
    table.loss_error[{layer, "w4a8_c"}] = 1;
    table.bytes[{layer, "w8a8_c"}] = 100;
    table.bytes[{layer, "w4a8_c"}] = 50;
    loss *= 2;
  }
  table.base_bytes = 10;
  return table;
}

const Limits kLimit{260, kNone, kNone};  // 10 fixed and two layers of 100: one must take 4 bits

search::Assignment best_of(const Table& table) {
  return search::solve_brute_force(make_problem(table, kLimit, {})).value();
}

TEST(SearchPlan, TheCheapestLayerGivesWay) {
  const Table table = three_layers();
  const search::Assignment best = best_of(table);
  EXPECT_EQ(best.loss, 1);
  EXPECT_EQ(best.costs[0], 260);
  EXPECT_EQ(to_schemes(table, best).at("a"), scheme("w4a8_c"));
}

TEST(SearchPlan, AlternativesAreNewAndKeepTheLimit) {
  const Table table = three_layers();
  const search::Solver* solver = search::find_solver("brute_force").value();
  const search::Assignment best = best_of(table);
  const auto found = alternatives_to(best, *solver, table, kLimit, {}, 3, 0);
  ASSERT_EQ(found.size(), 3u);
  std::set<std::vector<std::size_t>> all{best.choices};
  for (const Alternative& one : found) {
    EXPECT_TRUE(all.insert(one.answer.choices).second);
    EXPECT_LE(one.answer.costs[0], 260);
    EXPECT_GE(one.answer.loss, best.loss);  // by the table's losses, not the moved ones
  }
  const auto again = alternatives_to(best, *solver, table, kLimit, {}, 3, 0);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].answer.choices, again[i].answer.choices);
}

TEST(SearchPlan, WithoutErrorsTheNextBestComesNext) {
  Table table = three_layers();
  table.loss_error.clear();
  const auto found =
      alternatives_to(best_of(table), *search::find_solver("brute_force").value(), table, kLimit, {}, 1, 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].answer.loss, 2);  // b instead of a
  EXPECT_EQ(found[0].origin, "next best by the scores");
}

TEST(SearchPlan, ThereAreNoMoreAnswersThanThereAre) {
  Table table = three_layers();
  table.groups.resize(1);
  // One layer, 110 bytes at most: 8 bits is the best answer, 4 bits the only other.
  const Limits limit{110, kNone, kNone};
  const search::Solver* solver = search::find_solver("brute_force").value();
  const search::Assignment best = solver->solve(make_problem(table, limit, {})).value();
  EXPECT_EQ(alternatives_to(best, *solver, table, limit, {}, 5, 0).size(), 1u);
}

TEST(SearchPlan, APriceIsLossSavedForAUnitMore) {
  Table table = three_layers();
  // All at 8 bits take 30,010 bytes: 29,900 do not hold them, a hundredth more (299) does and saves 1 nat.
  for (auto& [key, bytes] : table.bytes) bytes *= 100;
  table.base_bytes = 10;
  const Limits limit{29900, kNone, kNone};
  const search::Solver* solver = search::find_solver("brute_force").value();
  const search::Assignment best = solver->solve(make_problem(table, limit, {})).value();
  EXPECT_EQ(best.loss, 1);
  EXPECT_NEAR(prices_of(*solver, table, limit, {}, best.loss).size, 1 / 299.0, 1e-12);
  EXPECT_EQ(prices_of(*solver, table, limit, {}, best.loss).latency, 0);
}

TEST(SearchPlan, AReasonHoldsTheNextSmallerChoiceAgainstThePrice) {
  const Table table = three_layers();
  // 50 bytes for 4 nats are 80 a kB.
  const std::string reason = reason_for(table, table.groups[2], scheme("w8a8_c"), {0.002, 0, 0});
  EXPECT_EQ(reason, "w4a8_c would save 0.1 kB and cost 4 nats more (80 a kB; the budget's price is 2)");
}

}  // namespace
}  // namespace ctk::pipeline::search_table
