#include "compress/search_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include "compress/loss_correction.h"
#include "compress/search_front.h"
#include "compress/search_pairs.h"

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

const Limits kLimit{260, kNone, kNone, kNone};  // 10 fixed and two layers of 100: one must take 4 bits

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

TEST(SearchPlan, MixingIsHeldAgainstOneSchemeEverywhere) {
  // 160 bytes hold 4 bits everywhere (7 nats); 260 hold more, and the best answer mixes.
  const Table table = three_layers();
  const auto found =
      alternatives_to(best_of(table), *search::find_solver("brute_force").value(), table, kLimit, {}, 1, 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].answer.loss, 7);
  EXPECT_EQ(found[0].origin, "one scheme everywhere, w4a8_c");
}

TEST(SearchPlan, WithoutErrorsTheNextBestComesNext) {
  Table table = three_layers();
  table.loss_error.clear();
  const auto found =
      alternatives_to(best_of(table), *search::find_solver("brute_force").value(), table, kLimit, {}, 2, 0);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].answer.loss, 2);  // b instead of a
  EXPECT_EQ(found[1].origin, "next best by the scores");
}

TEST(SearchPlan, ThereAreNoMoreAnswersThanThereAre) {
  Table table = three_layers();
  table.groups.resize(1);
  // One layer, 110 bytes at most: 8 bits is the best answer, 4 bits the only other.
  const Limits limit{110, kNone, kNone, kNone};
  const search::Solver* solver = search::find_solver("brute_force").value();
  const search::Assignment best = solver->solve(make_problem(table, limit, {})).value();
  EXPECT_EQ(alternatives_to(best, *solver, table, limit, {}, 5, 0).size(), 1u);
}

TEST(SearchPlan, APriceIsLossSavedForAUnitMore) {
  Table table = three_layers();
  // All at 8 bits take 30,010 bytes: 29,900 do not hold them, a hundredth more (299) does and saves 1 nat.
  for (auto& [key, bytes] : table.bytes) bytes *= 100;
  table.base_bytes = 10;
  const Limits limit{29900, kNone, kNone, kNone};
  const search::Solver* solver = search::find_solver("brute_force").value();
  const search::Assignment best = solver->solve(make_problem(table, limit, {})).value();
  EXPECT_EQ(best.loss, 1);
  EXPECT_NEAR(prices_of(*solver, table, limit, {}, best.loss).size, 1 / 299.0, 1e-12);
  EXPECT_EQ(prices_of(*solver, table, limit, {}, best.loss).latency, 0);
}

TEST(SearchPlan, AReasonHoldsTheNextSmallerChoiceAgainstThePrice) {
  const Table table = three_layers();
  // 50 bytes at 0.002 nats each are worth 0.1, and losing them costs 4.
  const std::string reason = reason_for(table, table.groups[2], scheme("w8a8_c"), {0.002, 0, 0, 0});
  EXPECT_EQ(reason,
            "w4a8_c would save 50 B and cost 4 nats more; at the budgets' prices (2 a kB) that saves 0.1 elsewhere");
}

TEST(SearchPlan, AReasonCountsEveryBudgetThatHasAPrice) {
  Table table = three_layers();
  table.latency_us[{"c", "w8a8_c"}] = 300;
  table.latency_us[{"c", "w4a8_c"}] = 190;
  // 110 us at 0.00005 nats each are worth 0.0055.
  const std::string reason = reason_for(table, table.groups[2], scheme("w8a8_c"), {0, 0.00005, 0, 0});
  EXPECT_EQ(reason,
            "w4a8_c would save 50 B, 110 us of latency and cost 4 nats more; at the budgets' prices (0.05 a ms) that "
            "saves 0.0055 elsewhere");
}

TEST(SearchPlan, ABudgetIsMadeSmallWithinALoss) {
  const Table table = three_layers();
  const search::Problem problem = make_problem(table, kNoLimits, {});
  // Losses at 4 bits are 1, 2 and 4: within 3 a and b can take them, within 6 b and c, for the same 210 bytes.
  const auto smallest = [&](double most_loss) {
    return search::solve_brute_force(minimizing(problem, 0, most_loss)).value().costs[0];
  };
  EXPECT_EQ(smallest(0.5), 310);
  EXPECT_EQ(smallest(3), 210);
  EXPECT_EQ(smallest(6), 210);
  EXPECT_EQ(smallest(7), 160);
}

TEST(SearchPlan, TheFrontHasEveryAnswerThatNoneBeatsWithItsPrice) {
  const Table table = three_layers();
  const std::size_t size = find_budget("size").value();
  const auto front = front_of(table, kNoLimits, {}, std::span(&size, 1), 12).value();
  ASSERT_EQ(front.size(), 4u);
  const double bytes[] = {160, 210, 260, 310}, losses[] = {7, 3, 1, 0}, prices[] = {4.0 / 50, 2.0 / 50, 1.0 / 50, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(front[i].row.cost.size, bytes[i]);
    EXPECT_EQ(front[i].row.loss, losses[i]);
    EXPECT_NEAR(*front[i].row.price.size, prices[i], 1e-12);
    EXPECT_FALSE(front[i].row.cost.latency);  // nothing was timed
  }
}

TEST(SearchPlan, TheAnswerTakenJoinsItsFrontUnlessAPointBeatsIt) {
  Table table = three_layers();
  const std::size_t size = 0;
  search::Assignment taken;
  taken.choices = {0, 1, 0};  // b at 4 bits: loss 2 for 260 bytes, where a at 4 bits loses 1
  auto front = front_of(table, kNoLimits, {}, std::span(&size, 1), 12, &taken).value();
  EXPECT_EQ(front.size(), 4u);
  EXPECT_TRUE(std::ranges::none_of(front, [](const FrontPoint& point) { return point.row.is_chosen; }));
  taken.choices = {1, 1, 0};  // of two points, the cheapest and the best, it is none: 210 bytes, loss 3
  front = front_of(table, kNoLimits, {}, std::span(&size, 1), 2, &taken).value();
  ASSERT_EQ(front.size(), 3u);
  EXPECT_TRUE(front[1].row.is_chosen);
  EXPECT_EQ(front[1].row.cost.size, 210);
  EXPECT_NEAR(*front[0].row.price.size, 4.0 / 50, 1e-12);
}

TEST(SearchPlan, TheFrontOverTwoBudgetsTradesOneForTheOther) {
  Table table;
  // 4 bits are small and slow, 8 bits large and quick, and lose the same; float loses nothing and costs most of both.
  table.groups.push_back({{"a"}, {scheme("fp32"), scheme("w8a8_c"), scheme("w4a8_c")}, ""});
  table.bytes = {{{"a", "fp32"}, 400}, {{"a", "w8a8_c"}, 100}, {{"a", "w4a8_c"}, 50}};
  table.latency_us = {{{"a", "fp32"}, 40}, {{"a", "w8a8_c"}, 10}, {{"a", "w4a8_c"}, 20}};
  table.loss = {{{"a", "w8a8_c"}, 1}, {{"a", "w4a8_c"}, 1}};
  const std::size_t axes[] = {0, 1};
  const auto front = front_of(table, kNoLimits, {}, axes, 5).value();
  ASSERT_EQ(front.size(), 3u);
  EXPECT_EQ(front[0].row.cost.size, 50);
  EXPECT_EQ(front[0].row.cost.latency, 20);
  EXPECT_EQ(front[0].row.price.size, 0);  // float takes more of both
  EXPECT_EQ(front[0].row.price.latency, 0);
  EXPECT_EQ(front[1].row.cost.latency, 10);
  EXPECT_EQ(front[2].row.loss, 0);
}

// Room for one layer at 8 bits: two of three take 4, and by sums a and b lose least (3).
const Limits kTwoGiveWay{210, kNone, kNone, kNone, kNone, kNone};

search::Assignment best_of_two(const Table& table) {
  return search::solve_brute_force(make_problem(table, kTwoGiveWay, {})).value();
}

TEST(SearchPlan, NeighboursThatErrTogetherAreNotTakenTogether) {
  Table table = three_layers();
  EXPECT_EQ(best_of_two(table).loss, 3);
  table.pairs.push_back({"a", "w4a8_c", "b", "w4a8_c", 3, 9});  // together 6 more than their sum
  const search::Assignment best = best_of_two(table);
  EXPECT_EQ(best.loss, 5);  // a and c; b and c would lose 6, a and b 9
  EXPECT_EQ(to_schemes(table, best).at("b"), scheme("w8a8_c"));
  for (const char* name : {"ilp", "dp", "lagrangian", "greedy"}) {
    const search::Solver* solver = search::find_solver(name).value();
    EXPECT_EQ(solver->solve(make_problem(table, kTwoGiveWay, {})).value().loss, 5) << name;
  }
}

TEST(SearchPlan, NeighboursWhoseErrorsCancelAreTakenTogether) {
  Table table = three_layers();
  table.pairs.push_back({"b", "w4a8_c", "c", "w4a8_c", 6, 1});
  EXPECT_EQ(best_of_two(table).loss, 1);  // b and c: 2 + 4 - 5
}

TEST(SearchPlan, PairsOfChoicesThatAreGoneAddNothing) {
  Table table = three_layers();
  table.pairs.push_back({"a", "w4a8_c", "b", "w2a16_g32", 3, 9});
  table.pairs.push_back({"a", "w4a8_c", "elsewhere", "w4a8_c", 3, 9});
  EXPECT_EQ(best_of_two(table).loss, 3);
}

TEST(SearchPlan, WhatPairsAddCountsAgainstALossToKeep) {
  Table table = three_layers();
  table.pairs.push_back({"a", "w4a8_c", "b", "w4a8_c", 3, 9});
  // At most 5 nats: a and b would be 9, a and c are 5; b and c 6.
  const search::Assignment least =
      search::solve_brute_force(minimizing(make_problem(table, kNoLimits, {}), 0, 5)).value();
  EXPECT_EQ(least.costs[0], 210);
  EXPECT_EQ(to_schemes(table, least).at("b"), scheme("w8a8_c"));
}

TEST(SearchPlan, PhasesAreBudgetsOfTheirOwn) {
  Table table = three_layers();
  table.decode.base_us = 5;
  for (const char* layer : {"a", "b", "c"}) {
    table.decode.us[{layer, "w8a8_c"}] = 20;
    table.decode.us[{layer, "w4a8_c"}] = 10;
    table.prefill.us[{layer, "w8a8_c"}] = 100;  // where codes cost more than they save
    table.prefill.us[{layer, "w4a8_c"}] = 130;
  }
  // 5 + 3 * 20 = 65 without 4 bits: one layer must take them for 60, and a loses least.
  Limits limit = kNoLimits;
  limit.decode = 60;
  const search::Assignment best = search::solve_brute_force(make_problem(table, limit, {})).value();
  EXPECT_EQ(best.loss, 1);
  EXPECT_EQ(best.costs[4], 55);
  EXPECT_EQ(best.costs[5], 330);
  limit.prefill = 320;  // and no layer may: both cannot be kept
  EXPECT_FALSE(search::solve_brute_force(make_problem(table, limit, {})));
  EXPECT_TRUE(has_costs(table, *find_budget("latency.decode")));
  EXPECT_FALSE(has_costs(table, *find_budget("latency")));
}

TEST(SearchPlan, GoingBetweenCodesAndFloatsCostsTime) {
  // b and c take 20 us on codes and 25 with float activations, where they lose nothing; a has to be on codes.
  Table table;
  for (const char* layer : {"a", "b", "c"}) {
    table.groups.push_back({{layer}, {scheme("w8a8_c"), scheme("w8a16_c")}, ""});
    table.loss[{layer, "w8a8_c"}] = 1;
    table.latency_us[{layer, "w8a8_c"}] = 20;
    table.latency_us[{layer, "w8a16_c"}] = 25;
  }
  table.groups[0].choices.pop_back();
  Limits limit = kNoLimits;
  limit.latency = 65;
  // One of b and c may be in floats, for all that layers tell; the first found wins.
  const search::Assignment free = search::solve_brute_force(make_problem(table, limit, {})).value();
  EXPECT_EQ(free.costs[1], 65);
  EXPECT_EQ(free.loss, 2);
  // Behind a on codes, floats cost 3 us, back again 4: neither b (72) nor c (68) has the room.
  table.borders = {{"a", "b", 3, 2}, {"b", "c", 3, 4}};
  EXPECT_EQ(search::solve_brute_force(make_problem(table, limit, {}))->loss, 3);
  limit.latency = 68;
  const search::Assignment best = search::solve_brute_force(make_problem(table, limit, {})).value();
  EXPECT_EQ(best.costs[1], 68);
  EXPECT_EQ(to_schemes(table, best).at("c"), scheme("w8a16_c"));
  // All in floats behind a: one border, 20 + 3 + 25 + 25.
  limit.latency = 73;
  EXPECT_EQ(search::solve_brute_force(make_problem(table, limit, {}))->loss, 1);
}

TEST(LossCorrection, GainsOfCodedLayersStandForTheOthers) {
  Table table = three_layers();
  // a was coded at 4 bits and kept a fifth of its loss; b at 8 bits a half; c is not known: the mean, 0.35.
  const Table right = corrected(table, {2, {{{"a", "w4a8_c"}, 0.2}, {{"b", "w8a8_c"}, 0.5}}});
  EXPECT_DOUBLE_EQ(right.loss.at({"a", "w4a8_c"}), 2 * 0.2 * 1);
  EXPECT_DOUBLE_EQ(right.loss.at({"b", "w4a8_c"}), 2 * 0.5 * 2);
  EXPECT_DOUBLE_EQ(right.loss.at({"c", "w4a8_c"}), 2 * 0.35 * 4);
  EXPECT_DOUBLE_EQ(right.loss_error.at({"a", "w4a8_c"}), 0.4);
}

TEST(LossCorrection, PairsGoByBothGains) {
  Table table = three_layers();
  table.pairs.push_back({"a", "w4a8_c", "b", "w4a8_c", 3, 9});
  const Table right = corrected(table, {1, {{{"a", "w4a8_c"}, 0.25}, {{"b", "w4a8_c"}, 1.0}}});
  EXPECT_DOUBLE_EQ(right.pairs[0].loss(), 6 * 0.5);
}

}  // namespace
}  // namespace ctk::pipeline::search_table
