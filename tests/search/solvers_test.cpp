#include "search/solvers/solvers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <limits>

#include "core/random.h"
#include "tests/search/random_problem.h"

namespace ctk::search {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Processor time: what others run meanwhile must not count.
double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

Item item(std::string name, std::vector<Choice> choices) {
  return {std::move(name), std::move(choices)};
}

// Two layers, 4 or 8 bits each.
Problem two_layers(double limit) {
  Problem problem;
  problem.budgets = {{"size", limit, 100, "B"}};
  problem.items = {item("conv1", {{"w4a8_c", 0.5, {400}}, {"w8a8_c", 0.1, {800}}}),
                   item("conv2", {{"w4a8_c", 0.3, {1000}}, {"w8a8_c", 0.05, {2000}}})};
  return problem;
}

class EverySolver : public testing::TestWithParam<const Solver*> {
 protected:
  Result<Assignment> solve(const Problem& problem) const { return GetParam()->solve(problem); }
};

INSTANTIATE_TEST_SUITE_P(Table, EverySolver, testing::ValuesIn([] {
                           std::vector<const Solver*> rows;
                           for (const Solver& solver : solvers()) rows.push_back(&solver);
                           return rows;
                         }()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(EverySolver, TakesTheBestPairThatFits) {
  // Sizes with 100 fixed: 44 = 1500, 84 = 1900, 48 = 2500, 88 = 2900. Losses 0.8, 0.4, 0.55, 0.15.
  const std::tuple<double, std::vector<std::size_t>, double> cases[] = {{1500, {0, 0}, 0.8}, {1899, {0, 0}, 0.8},
                                                                        {1900, {1, 0}, 0.4}, {2500, {1, 0}, 0.4},
                                                                        {2899, {1, 0}, 0.4}, {2900, {1, 1}, 0.15}};
  for (const auto& [limit, choices, loss] : cases) {
    auto best = solve(two_layers(limit));
    ASSERT_TRUE(best) << best.error().message;
    EXPECT_EQ(best->choices, choices) << limit;
    EXPECT_DOUBLE_EQ(best->loss, loss);
    EXPECT_TRUE(best->proved_optimal || !GetParam()->is_exact);
    EXPECT_LE(best->bound, best->loss);
    EXPECT_DOUBLE_EQ(best->gap, best->loss - best->bound);
    EXPECT_EQ(best->gap == 0, best->proved_optimal);
    EXPECT_LE(best->costs[0], limit);
  }
}

TEST_P(EverySolver, HoldsTwoBudgetsAtOnce) {
  Problem problem;
  problem.budgets = {{"size", 30, 0, "B"}, {"latency", 30, 0, "us"}};
  // Small is slow: each item may be small or fast, or dear and lossless in neither.
  for (int i = 0; i < 3; ++i) {
    problem.items.push_back(item("l" + std::to_string(i),
                                 {{"small", 1.0 + i, {5, 15}}, {"fast", 1.5 + i, {15, 5}}, {"best", 0, {20, 20}}}));
  }
  // best + small + small is 30, 50: too slow. Without "best" the sums are size 5s + 15f <= 30 and 15s + 5f <= 30 with
  // s + f = 3: neither s = 2 (35 slow) nor s = 1 (35 large) fits, so there is none.
  auto none = solve(problem);
  ASSERT_FALSE(none);
  if (GetParam()->one_budget) {
    EXPECT_EQ(none.error().code, ErrorCode::config);
    EXPECT_NE(none.error().message.find("expected one budget with a limit, found 2 (size, latency)"),
              std::string::npos);
    return;
  }
  EXPECT_EQ(none.error().code, ErrorCode::budget_infeasible);
  problem.budgets[1].limit = 35;  // now two small and one fast: 25, 35; the fast one costs 0.5 more wherever it stands
  auto best = solve(problem);
  ASSERT_TRUE(best) << best.error().message;
  EXPECT_DOUBLE_EQ(best->loss, 1 + 2 + 3 + 0.5);
  // Three equal answers; all sizes equal too; the earliest choices first: small, small, fast.
  EXPECT_EQ(best->choices, (std::vector<std::size_t>{0, 0, 1}));
}

TEST_P(EverySolver, BreaksTiesByFirstCostThenByOrder) {
  Problem problem;
  problem.budgets = {{"size", 100, 0, "B"}};
  problem.items = {item("a", {{"x", 1, {30}}, {"y", 1, {20}}, {"z", 1, {20}}})};
  auto best = solve(problem);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->choices, (std::vector<std::size_t>{1}));
}

TEST_P(EverySolver, IdenticalItemsTakeTheEarlierChoiceFirst) {
  Problem problem;
  problem.budgets = {{"size", 28, 0, "B"}};
  for (int i = 0; i < 5; ++i) problem.items.push_back(item("l" + std::to_string(i), {{"w4", 1, {4}}, {"w8", 0, {8}}}));
  // Two may take 8 bits: 3 * 4 + 2 * 8 = 28.
  auto best = solve(problem);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->choices, (std::vector<std::size_t>{0, 0, 0, 1, 1}));
}

TEST_P(EverySolver, AnswersForNoItemsAndForNoBudgets) {
  Problem problem;
  problem.budgets = {{"size", 10, 10, "B"}};
  auto empty = solve(problem);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->choices.empty());
  EXPECT_EQ(empty->costs, (std::vector<double>{10}));
  problem.budgets[0].limit = 9;
  EXPECT_FALSE(solve(problem));

  Problem free;
  free.items = {item("a", {{"x", 2, {}}, {"y", 1, {}}, {"z", 1, {}}})};
  auto best = solve(free);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->choices, (std::vector<std::size_t>{1}));
}

TEST_P(EverySolver, TakesTheOnlyChoice) {
  Problem problem = two_layers(2900);
  for (Item& it : problem.items) it.choices.resize(1);
  auto best = solve(problem);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->choices, (std::vector<std::size_t>{0, 0}));
  problem.budgets[0].limit = 1499;
  EXPECT_EQ(solve(problem).error().code, ErrorCode::budget_infeasible);
}

TEST_P(EverySolver, WithoutLimitEveryItemIsAtItsBest) {
  auto best = solve(two_layers(kInfinity));
  ASSERT_TRUE(best);
  EXPECT_EQ(best->choices, (std::vector<std::size_t>{1, 1}));
  EXPECT_EQ(best->costs, (std::vector<double>{2900}));
}

TEST_P(EverySolver, NegativeLossesAreLossesToo) {
  Problem problem = two_layers(1900);
  problem.items[0].choices[0].loss = -0.2;  // a measured loss may come out just below none
  problem.items[0].choices[1].loss = -0.1;
  auto best = solve(problem);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->choices, (std::vector<std::size_t>{0, 0}));
  EXPECT_DOUBLE_EQ(best->loss, -0.2 + 0.3);
}

TEST_P(EverySolver, NamesTheItemAndChoiceOfANumberThatIsNone) {
  Problem problem = two_layers(2900);
  problem.items[1].choices[0].loss = std::nan("");
  auto found = solve(problem);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::input);
  EXPECT_NE(found.error().message.find("item \"conv2\", choice \"w4a8_c\": expected a finite loss, found nan"),
            std::string::npos)
      << found.error().message;
  problem = two_layers(2900);
  problem.items[0].choices[1].costs[0] = -1;
  EXPECT_NE(solve(problem).error().message.find("budget.size, found -1"), std::string::npos);
  problem.items[0].choices[1].costs.clear();
  EXPECT_NE(solve(problem).error().message.find("expected 1 costs, one a budget, found 0"), std::string::npos);
  problem.items[0].choices.clear();
  EXPECT_NE(solve(problem).error().message.find("expected at least one choice"), std::string::npos);
}

TEST(Solvers, AreFoundByName) {
  EXPECT_EQ(find_solver("ilp").value()->name, "ilp");
  auto unknown = find_solver("magic");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::config);
  EXPECT_NE(unknown.error().message.find(
                "expected one of ilp, dp, lagrangian, greedy, evolutionary, brute_force, found \"magic\""),
            std::string::npos);
}

TEST(BruteForce, RefusesWhatItCannotFinish) {
  Problem problem;
  for (int i = 0; i < 23; ++i) problem.items.push_back(item("i", {{"a", 0, {}}, {"b", 1, {}}}));
  EXPECT_NE(solve_brute_force(problem).error().message.find("at most 4194304 combinations"), std::string::npos);
}

TEST(Ilp, AgreesWithBruteForceOnRandomProblems) {
  Random random(300, "ilp against brute force");
  int feasible = 0, infeasible = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("seed 300, round " + std::to_string(round));
    const Problem problem = random_problem(random, round % 2 == 0);
    auto expected = solve_brute_force(problem);
    auto found = solve_ilp(problem);
    ASSERT_EQ(found.has_value(), expected.has_value());
    if (!found) {
      EXPECT_EQ(found.error().code, ErrorCode::budget_infeasible) << found.error().message;
      EXPECT_EQ(found.error().message, expected.error().message);
      ++infeasible;
      continue;
    }
    ++feasible;
    EXPECT_EQ(found->choices, expected->choices);
    EXPECT_EQ(found->loss, expected->loss);
    EXPECT_TRUE(found->proved_optimal);
  }
  // The mix must hold both kinds, or the test shows nothing.
  EXPECT_GT(feasible, 100);
  EXPECT_GT(infeasible, 30);
}

TEST(Ilp, Solves200ItemsUnderTwoBudgetsInTime) {
  for (std::uint64_t seed : {1, 2, 3}) {
    const Problem problem = large_problem(seed, 4, 2, 0);
    const std::clock_t start = std::clock();
    auto best = solve_ilp(problem);
    const double seconds = seconds_since(start);
    ASSERT_TRUE(best) << best.error().message;
    EXPECT_TRUE(best->proved_optimal);
    EXPECT_LE(best->costs[0], problem.budgets[0].limit);
    EXPECT_LE(best->costs[1], problem.budgets[1].limit * (1 + 1e-9));
    EXPECT_LT(seconds, 2.0);
    std::printf("200 items x 4 choices x 2 budgets, seed %d: %.3f s\n", static_cast<int>(seed), seconds);
    // No exchange of one item improves it: a necessary condition that needs no solver.
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      for (std::size_t c = 0; c < 4; ++c) {
        std::vector<std::size_t> other = best->choices;
        other[i] = c;
        const Assignment total = total_of(problem, other);
        const bool fits = total.costs[0] <= problem.budgets[0].limit && total.costs[1] <= problem.budgets[1].limit;
        EXPECT_FALSE(fits && total.loss < best->loss - 1e-12) << i << " " << c;
      }
    }
  }
}

TEST(Ilp, GivesTheSameAnswerTwice) {
  const Problem problem = large_problem(4, 4, 2, 0);
  EXPECT_EQ(solve_ilp(problem)->choices, solve_ilp(problem)->choices);
}

TEST(Ilp, ManyIdenticalItemsStayQuickAndOrdered) {
  Problem problem;
  problem.budgets = {{"size", 200 * 4 + 77 * 4 + 2, 0, "B"}};
  for (int i = 0; i < 200; ++i)
    problem.items.push_back(item("l" + std::to_string(i), {{"w4", 1, {4}}, {"w8", 0.25, {8}}, {"w16", 0, {16}}}));
  const std::clock_t start = std::clock();
  auto best = solve_ilp(problem);
  const double seconds = seconds_since(start);
  ASSERT_TRUE(best) << best.error().message;
  EXPECT_LT(seconds, 2.0);
  // 4 -> 8 bits saves 0.75 for 4 bytes, 8 -> 16 0.25 for 8 more: 77 items take 8 bits.
  EXPECT_DOUBLE_EQ(best->loss, 200 - 77 * 0.75);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(best->choices[i], i < 123 ? 0u : 1u) << i;
}

}  // namespace
}  // namespace ctk::search
