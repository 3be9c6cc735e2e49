// Pairwise terms: every solver of the table honours Problem::edges.
#include <gtest/gtest.h>

#include <ctime>

#include "search/grid.h"
#include "search/infeasible.h"
#include "search/solvers/bounds.h"
#include "search/solvers/solvers.h"
#include "tests/search/random_problem.h"

namespace ctk::search {
namespace {

// Three layers in a row, 4 or 8 bits; where neighbours differ, a conversion costs 3 us.
Problem chain(double limit_us) {
  Problem problem;
  problem.budgets = {{"latency", limit_us, 0, "us"}};
  for (const double loss : {0.1, 0.4, 0.1})
    problem.items.push_back({"l" + std::to_string(problem.items.size()), {{"w4", loss, {4}}, {"w8", 0, {6}}}});
  for (std::size_t i : {0, 1}) problem.edges.push_back({i, i + 1, {{0, 1, 0, {3}}, {1, 0, 0, {3}}}});
  return problem;
}

TEST(Edges, AConversionMakesALoneExceptionTooDear) {
  // The middle layer alone at 8 bits: 4 + 6 + 4 us and two conversions of 3: 20. Two neighbours at 8 bits: 6 + 6 + 4
  // and one conversion: 19. All at 8 bits: 18.
  for (const Solver& solver : solvers()) {
    auto best = solver.solve(chain(18));
    ASSERT_TRUE(best) << best.error().message;
    EXPECT_EQ(best->choices, (std::vector<std::size_t>{1, 1, 1})) << solver.name;
    best = solver.solve(chain(16));
    ASSERT_TRUE(best) << best.error().message;
    EXPECT_EQ(best->choices, (std::vector<std::size_t>{0, 0, 0})) << solver.name;
    EXPECT_EQ(best->costs, (std::vector<double>{12})) << solver.name;
    EXPECT_DOUBLE_EQ(best->loss, 0.6) << solver.name;
  }
}

TEST(Edges, ALossOfTwoTogetherIsCounted) {
  Problem problem = chain(16);
  problem.edges = {{2, 0, {{0, 0, 1.0, {}}}}};  // items in any order; a pair that is worse than its sum
  // 4 + 4 + 6 or 6 + 4 + 4 lose 0.5, 4 + 6 + 4 loses 0.2 and 1.0 more, 4 + 6 + 6 = 16 loses 0.1.
  for (const Solver& solver : solvers()) {
    auto best = solver.solve(problem);
    ASSERT_TRUE(best) << best.error().message;
    EXPECT_EQ(best->choices, (std::vector<std::size_t>{0, 1, 1})) << solver.name;
    EXPECT_DOUBLE_EQ(best->loss, 0.1) << solver.name;
    EXPECT_TRUE(best->proved_optimal || !solver.is_exact) << solver.name;
  }
}

TEST(Edges, TheLeastReachableCountsConversions) {
  Problem problem = chain(13);
  problem.items[1].choices[0].costs[0] = 7;  // now 8 bits are quicker in the middle, but not with two conversions
  auto none = solve_ilp(problem);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::budget_infeasible);
  EXPECT_NE(none.error().message.find("smallest reachable is 15 us (all layers at w4)"), std::string::npos)
      << none.error().message;
}

TEST(Edges, WrongOnesAreNamed) {
  const std::pair<Edge, const char*> cases[] = {
      {{0, 3, {}}, "edge 0: expected two different items below 3, found 0 and 3"},
      {{1, 1, {}}, "expected two different items below 3, found 1 and 1"},
      {{0, 1, {{0, 2, 0, {}}}}, "edge 0 between \"l0\" and \"l1\": expected choices below 2 and 2, found 0 and 2"},
      {{0, 1, {{0, 1, std::nan(""), {}}}}, "\"w4\" with \"w8\": expected a finite loss, found nan"},
      {{0, 1, {{0, 1, 0, {-1}}}}, "expected a finite cost >= 0 for budget.latency, found -1"},
      {{0, 1, {{0, 1, 0, {1, 1}}}}, "expected no costs or 1, one a budget, found 2"}};
  for (const auto& [edge, words] : cases) {
    Problem problem = chain(20);
    problem.edges = {edge};
    for (const Solver& solver : solvers()) {
      auto found = solver.solve(problem);
      ASSERT_FALSE(found);
      EXPECT_EQ(found.error().code, ErrorCode::input);
      EXPECT_NE(found.error().message.find(words), std::string::npos) << found.error().message;
    }
  }
}

TEST(Edges, IlpAgreesWithBruteForce) {
  Random random(400, "edges against brute force");
  int feasible = 0, infeasible = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("seed 400, round " + std::to_string(round));
    Problem problem = random_problem(random, round % 2 == 0);
    add_random_edges(problem, random, round % 2 == 0);
    auto expected = solve_brute_force(problem);
    auto found = solve_ilp(problem);
    ASSERT_EQ(found.has_value(), expected.has_value()) << (found ? expected : found).error().message;
    ++(found ? feasible : infeasible);
    if (!found) {
      EXPECT_EQ(found.error().message, expected.error().message);
      continue;
    }
    EXPECT_EQ(found->choices, expected->choices);
    EXPECT_TRUE(found->proved_optimal);
  }
  EXPECT_GT(feasible, 100);
  EXPECT_GT(infeasible, 30);
}

TEST(Edges, Ilp200ItemsInARowTakesUnderTwoSeconds) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Problem problem = large_problem(seed, 12, 3, 0.3);
    const std::clock_t start = std::clock();
    auto best = solve_ilp(problem);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    ASSERT_TRUE(best) << best.error().message;
    EXPECT_LT(seconds, 2.0);
    for (std::size_t b = 0; b < 3; ++b) EXPECT_LE(best->costs[b], problem.budgets[b].limit * (1 + 1e-9));
    EXPECT_LE(best->gap, 0.01 * best->loss);
    std::printf("200 items x 12 choices x 3 budgets in a row, seed %d: %.3f s, loss %.6f, gap %.2g\n",
                static_cast<int>(seed), seconds, best->loss, best->gap);
  }
}

TEST(Edges, BoundsHoldForEveryAssignmentAndAreExactOnChains) {
  Random random(5, "bounds");
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE("seed 5, round " + std::to_string(round));
    Problem problem = random_problem(random, false);
    const bool is_chain = round % 2 == 0;
    if (!is_chain) add_random_edges(problem, random, false);
    for (std::size_t i = 1; is_chain && i < problem.items.size(); ++i)
      problem.edges.push_back({i - 1, i, {{0, 0, random.uniform(), {}}, {0, 0, random.uniform(), {}}}});
    if (problem.items.empty()) continue;
    const Grid grid = make_grid(problem);
    const std::vector<double> multipliers(problem.budgets.size(), random.uniform() * 1e9);
    const Lagrangian bounds = lagrangian(grid, multipliers);
    double least = 1e300;
    std::vector<std::size_t> positions(grid.items.size(), 0);
    for (bool is_more = true; is_more;) {
      const GridTotal total = total_of(grid, positions);
      double price = static_cast<double>(total.loss), summed = bounds.bound;
      for (std::size_t b = 0; b < multipliers.size(); ++b)
        price += multipliers[b] * static_cast<double>(total.costs[b] - grid.limits[b]);
      for (std::size_t i = 0; i < positions.size(); ++i) {
        summed += bounds.reduced[i][positions[i]];
        EXPECT_GE(bounds.reduced[i][positions[i]], 0);
        EXPECT_LE(bounds.bound + bounds.least_with[i][positions[i]], price + bounds.margin);
      }
      for (std::size_t e = 0; e < grid.edges.size(); ++e) {
        const GridEdge& edge = grid.edges[e];
        const double term = bounds.reduced_edges[e][positions[edge.a] * grid.items[edge.b].size() + positions[edge.b]];
        summed += term;
        EXPECT_GE(term, 0);
      }
      EXPECT_NEAR(summed, price, bounds.margin + 1e-9 * std::abs(price));
      least = std::min(least, price);
      is_more = false;
      for (std::size_t i = positions.size(); i-- > 0 && !is_more;) {
        is_more = ++positions[i] < grid.items[i].size();
        if (!is_more) positions[i] = 0;
      }
    }
    EXPECT_LE(bounds.bound, least + bounds.margin);
    if (is_chain) {
      EXPECT_NEAR(bounds.bound, least, bounds.margin + 1e-9 * std::abs(least));
    }
  }
}

}  // namespace
}  // namespace ctk::search
