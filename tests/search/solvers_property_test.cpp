// Every row of the solvers' table against brute force, against the clock and against the number of threads.
#include <gtest/gtest.h>

#include <ctime>
#include <limits>
#include <map>
#include <set>

#include "core/parallel.h"
#include "search/solvers/evolution.h"
#include "search/solvers/solvers.h"
#include "tests/search/random_problem.h"

namespace ctk::search {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The first budget only, for solvers that take one.
Problem with_one_limit(Problem problem) {
  for (std::size_t b = 1; b < problem.budgets.size(); ++b) problem.budgets[b].limit = kInfinity;
  return problem;
}

bool keeps_limits(const Problem& problem, const Assignment& found) {
  for (std::size_t b = 0; b < problem.budgets.size(); ++b) {
    if (found.costs[b] > problem.budgets[b].limit * (1 + 1e-9) + 1e-9) return false;
  }
  return true;
}

TEST(SolversProperty, AgreeWithBruteForceOnAThousandProblems) {
  Random random(1000, "all solvers against brute force");
  int feasible = 0, infeasible = 0;
  std::map<std::string_view, std::pair<int, int>> reached;  // optimum met, answers
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE("seed 1000, round " + std::to_string(round));
    const bool is_whole = round % 2 == 0;
    Problem several = random_problem(random, is_whole);
    if (round % 4 >= 2) add_random_edges(several, random, is_whole);
    const Problem single = with_one_limit(several);
    const auto best_of_several = solve_brute_force(several), best_of_one = solve_brute_force(single);
    ++(best_of_several ? feasible : infeasible);
    for (const Solver& solver : solvers()) {
      SCOPED_TRACE(solver.name);
      const Problem& problem = solver.one_budget ? single : several;
      const auto& expected = solver.one_budget ? best_of_one : best_of_several;
      auto found = solver.solve(problem);
      ASSERT_EQ(found.has_value(), expected.has_value()) << (found ? expected : found).error().message;
      if (!found) {
        EXPECT_EQ(found.error().code, ErrorCode::budget_infeasible);
        EXPECT_EQ(found.error().message, expected.error().message);
        continue;
      }
      // Losses are equal to a unit of the grid, 1e-12 of the largest possible sum (below 100 here).
      constexpr double kUnit = 1e-10;
      EXPECT_TRUE(keeps_limits(problem, *found));
      EXPECT_GE(found->loss, expected->loss - kUnit);
      EXPECT_LE(found->bound, expected->loss + kUnit);
      EXPECT_DOUBLE_EQ(found->gap, found->loss - found->bound);
      EXPECT_GE(found->gap, 0);
      if (found->proved_optimal) {
        EXPECT_NEAR(found->loss, expected->loss, kUnit);
      }
      if (solver.is_exact) {
        EXPECT_EQ(found->choices, expected->choices);
        EXPECT_TRUE(found->proved_optimal);
      }
      auto& [met, answers] = reached[solver.name];
      met += found->loss <= expected->loss + kUnit;
      ++answers;
    }
  }
  EXPECT_GT(feasible, 300);
  EXPECT_GT(infeasible, 100);
  for (const auto& [name, counts] : reached) {
    std::printf("%.*s: optimum in %d of %d\n", static_cast<int>(name.size()), name.data(), counts.first, counts.second);
    EXPECT_GE(counts.first, 0.8 * counts.second) << name;
  }
}

TEST(SolversProperty, AnswerLargeProblemsInTwoSeconds) {
  for (const double conversion : {0.0, 0.3}) {
    const Problem several = large_problem(1, 12, 3, conversion), single = with_one_limit(several);
    double best_bound = -kInfinity;
    for (const Solver& solver : solvers()) {
      if (solver.name == "brute_force") continue;
      SCOPED_TRACE(solver.name);
      const Problem& problem = solver.one_budget ? single : several;
      const std::clock_t start = std::clock();
      auto found = solver.solve(problem);
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_LT(seconds, 2.0);
      EXPECT_TRUE(keeps_limits(problem, *found));
      EXPECT_LE(found->gap, 0.02 * found->loss);
      if (!solver.one_budget) best_bound = std::max(best_bound, found->bound);
      EXPECT_GE(found->loss, (solver.one_budget ? found->bound : best_bound) - 1e-12);
      std::printf("200 items x 12 choices x %d budgets%s, %.*s: %.3f s, loss %.6f, gap %.2g\n",
                  solver.one_budget ? 1 : 3, conversion > 0 ? " in a row" : "", static_cast<int>(solver.name.size()),
                  solver.name.data(), seconds, found->loss, found->gap);
    }
  }
}

TEST(SolversProperty, AnswerAlikeWithAnyNumberOfThreads) {
  const Problem several = large_problem(9, 4, 2, 0.1), single = with_one_limit(several);
  const int before = threads();
  for (const Solver& solver : solvers()) {
    if (solver.name == "brute_force") continue;
    const Problem& problem = solver.one_budget ? single : several;
    set_threads(1);
    const auto alone = solver.solve(problem);
    set_threads(3);
    const auto together = solver.solve(problem);
    ASSERT_TRUE(alone && together) << solver.name;
    EXPECT_EQ(alone->choices, together->choices) << solver.name;
    EXPECT_EQ(alone->bound, together->bound) << solver.name;
  }
  set_threads(before);
}

TEST(Dp, SizesOfHundredMegabytesAreExact) {
  // Costs up to 1e8 bytes and a limit that no rounding forgives: 3 * 33333333 + 1 = 100000000.
  Problem problem;
  problem.budgets = {{"size", 1e8, 0, "B"}};
  problem.items = {{"a", {{"x", 0, {66666667}}, {"y", 1, {33333333}}}},
                   {"b", {{"x", 0, {66666667}}, {"y", 2, {33333334}}}}};
  // b at its best: 66666667 + 33333333 = 1e8 fits exactly and loses 1; a at its best would need 1 byte more.
  auto best = solve_dp(problem);
  ASSERT_TRUE(best) << best.error().message;
  EXPECT_EQ(best->choices, (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(best->costs[0], 1e8);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Problem large = with_one_limit(large_problem(seed, 6, 1, 0));
    auto by_dp = solve_dp(large), by_ilp = solve_ilp(large);
    ASSERT_TRUE(by_dp && by_ilp);
    EXPECT_TRUE(by_dp->proved_optimal);
    EXPECT_EQ(by_dp->choices, by_ilp->choices) << seed;
  }
}

TEST(Greedy, RemovesPrecisionChangesThatCostMoreThanTheyGain) {
  // 8 bits gain 0.1 at the outer layers and 0.01 in the middle; a border costs 3 us. The step down that loses least
  // puts the middle layer alone at 4 bits (1.01 us saved for 0.01), where two borders are paid for in loss.
  Problem problem;
  problem.budgets = {{"latency", 100, 0, "us"}};
  for (const double gain : {0.1, 0.01, 0.1})
    problem.items.push_back({"l" + std::to_string(problem.items.size()), {{"w4", 0, {4}}, {"w8", gain - 0.2, {6}}}});
  problem.items[1].choices[1].loss = 0.01;  // alone, 4 bits are better in the middle
  for (std::size_t i : {0, 1}) problem.edges.push_back({i, i + 1, {{0, 1, 0.02, {3}}, {1, 0, 0.02, {3}}}});
  // w8 w4 w8: -0.1 + 0 - 0.1 and two borders 0.04: -0.16. All w8: -0.1 + 0.01 - 0.1 = -0.19.
  auto best = solve_greedy(problem);
  ASSERT_TRUE(best) << best.error().message;
  EXPECT_EQ(best->choices, (std::vector<std::size_t>{1, 1, 1}));
  EXPECT_DOUBLE_EQ(best->loss, -0.19);
}

// Two layers that are harmless alone and harmful together, which no sum shows.
Problem additive(std::size_t items) {
  Problem problem;
  problem.budgets = {{"size", 6.0 * static_cast<double>(items), 0, "B"}};
  for (std::size_t i = 0; i < items; ++i)
    problem.items.push_back(
        {"l" + std::to_string(i), {{"w4", 0.1 + 0.01 * static_cast<double>(i), {4}}, {"w8", 0, {8}}}});
  return problem;
}

TEST(Evolution, MeasuresWholeCandidatesAndBelievesThem) {
  const Problem problem = additive(8);  // four may take 8 bits; by the sum the last four do
  std::set<std::vector<std::size_t>> asked;
  EvolutionOptions options;
  options.seed = 7;
  options.most_measurements = 60;
  options.measure = [&](const std::vector<std::size_t>& choices) -> Result<double> {
    EXPECT_TRUE(asked.insert(choices).second) << "asked twice";
    double loss = total_of(problem, choices).loss;
    if (choices[0] == 0 && choices[1] == 0) loss += 1;
    return loss;
  };
  auto found = evolve(problem, options);
  ASSERT_TRUE(found) << found.error().message;
  // One of the first two goes to 8 bits; l0 loses 0.10 at 4 bits, l1 0.11: l1 and the last three, l4 stays at 4 bits.
  EXPECT_EQ(found->best.choices, (std::vector<std::size_t>{0, 1, 0, 0, 0, 1, 1, 1}));
  EXPECT_DOUBLE_EQ(found->measured_loss, 0.10 + 0.12 + 0.13 + 0.14);
  EXPECT_LE(found->measurements, 60u);
  EXPECT_EQ(found->measurements, asked.size());
  asked.clear();
  EXPECT_EQ(evolve(problem, options)->best.choices, found->best.choices);
}

TEST(Evolution, ReturnsWhatMeasuringSays) {
  EvolutionOptions options;
  options.measure = [](const std::vector<std::size_t>&) -> Result<double> { return input_error("no such sample"); };
  EXPECT_EQ(evolve(additive(3), options).error().message, "no such sample");
  options.measure = [](const std::vector<std::size_t>&) -> Result<double> { return std::nan(""); };
  EXPECT_NE(evolve(additive(3), options).error().message.find("finite measured loss, found nan"), std::string::npos);
  options.most_measurements = 0;
  EXPECT_EQ(evolve(additive(3), options).error().code, ErrorCode::config);
}

}  // namespace
}  // namespace ctk::search
