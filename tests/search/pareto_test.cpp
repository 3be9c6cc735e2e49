#include "search/pareto.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <limits>

#include "core/random.h"
#include "search/nearest.h"
#include "search/solvers/solvers.h"
#include "tests/search/random_problem.h"

namespace ctk::search {
namespace {

// Sizes 10 to 30; losses fall by 4, 1 and 3 as one item after the other takes 5 more or 10 more.
Problem two_items() {
  Problem problem;
  problem.budgets = {{"size", 15, 0, "B"}};
  problem.items = {{"a", {{"w4", 5, {5}}, {"w8", 1, {10}}}},
                   {"b", {{"w4", 3, {5}}, {"w8", 2, {10}}, {"w16", 0, {20}}}}};
  return problem;
}

std::vector<std::pair<double, double>> pairs(const std::vector<FrontPoint>& points, std::size_t budget) {
  std::vector<std::pair<double, double>> out;
  for (const FrontPoint& point : points) out.emplace_back(point.answer.costs[budget], point.answer.loss);
  return out;
}

TEST(Pareto, ListsEveryPointWithThePriceOfTheNextStep) {
  // (10, 8) (15, 4) (20, 3) (25, 3 beaten) (30, 1). The chord from (15, 4) to (30, 1) passes (20, 3): on the hull.
  auto points = front(two_items(), 0, 10);
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_EQ(pairs(*points, 0), (std::vector<std::pair<double, double>>{{10, 8}, {15, 4}, {20, 3}, {30, 1}}));
  EXPECT_DOUBLE_EQ((*points)[0].price, 0.8);
  EXPECT_DOUBLE_EQ((*points)[1].price, 0.2);
  EXPECT_DOUBLE_EQ((*points)[2].price, 0.2);
  EXPECT_EQ((*points)[3].price, 0);
  EXPECT_TRUE((*points)[1].is_supported);
}

TEST(Pareto, FewPointsKeepTheEndsAndTheSharpestCorner) {
  auto points = front(two_items(), 0, 3);
  ASSERT_TRUE(points);
  EXPECT_EQ(pairs(*points, 0), (std::vector<std::pair<double, double>>{{10, 8}, {15, 4}, {30, 1}}));
}

// Every assignment that the other budgets allow, none beaten.
std::vector<std::pair<double, double>> exact_front(const Problem& problem, std::size_t budget) {
  std::vector<std::pair<double, double>> all;
  std::vector<std::size_t> choices(problem.items.size(), 0);
  for (bool is_more = true; is_more;) {
    const Assignment total = total_of(problem, choices);
    bool fits = true;
    for (std::size_t b = 0; b < total.costs.size(); ++b)
      fits = fits && (b == budget || total.costs[b] <= problem.budgets[b].limit);
    if (fits) all.emplace_back(total.costs[budget], total.loss);
    is_more = false;
    for (std::size_t i = choices.size(); i-- > 0 && !is_more;) {
      is_more = ++choices[i] < problem.items[i].choices.size();
      if (!is_more) choices[i] = 0;
    }
  }
  std::sort(all.begin(), all.end());
  std::vector<std::pair<double, double>> kept;
  for (const auto& point : all) {
    if (kept.empty() || point.second < kept.back().second - 1e-9) kept.push_back(point);
  }
  return kept;
}

TEST(Pareto, IsTheFrontOfEveryAssignment) {
  Random random(60, "front");
  int compared = 0, complete = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("seed 60, round " + std::to_string(round));
    Problem problem = random_problem(random, true);
    if (round % 2 == 0) add_random_edges(problem, random, true);
    const std::size_t budget = random.below(problem.budgets.size());
    const auto expected = exact_front(problem, budget);
    auto found = front(problem, budget, 40);
    ASSERT_EQ(found.has_value(), !expected.empty());
    if (!found) continue;
    ++compared;
    const auto points = pairs(*found, budget);
    EXPECT_EQ(points.front().first, expected.front().first);
    EXPECT_NEAR(points.back().second, expected.back().second, 1e-9);
    for (const auto& point : points) {
      EXPECT_TRUE(std::any_of(expected.begin(), expected.end(),
                              [&](const auto& other) {
                                return other.first == point.first && std::abs(other.second - point.second) < 1e-9;
                              }))
          << point.first << " " << point.second;
    }
    EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
    complete += points.size() == expected.size();
  }
  EXPECT_GT(compared, 40);
  EXPECT_EQ(complete, compared);  // 40 points are more than these fronts have
}

// Average bits of three layers: thirds and ninths whose sum is no sum of whole units.
TEST(Pareto, FractionalCostsReachTheirOwnLeast) {
  Problem problem;
  problem.budgets.push_back({"bits", std::numeric_limits<double>::infinity(), 0, "bits"});
  const double weights[] = {3072, 2304, 1536}, codes[] = {1728, 1344, 896};
  for (int i = 0; i < 3; ++i)
    problem.items.push_back({"layer", {{"float", 0, {32 * weights[i] / 6912}}, {"codes", 1, {8 * codes[i] / 6912}}}});
  const auto found = front(problem, 0, 12);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_NEAR(found->front().answer.costs[0], 8 * (1728 + 1344 + 896) / 6912.0, 1e-9);
  EXPECT_EQ(found->front().answer.loss, 3);
  EXPECT_EQ(found->back().answer.loss, 0);
  // As one of two budgets it is held to its least as well, whatever its numbers are.
  ctk::Random random(3, "fractions");
  problem.budgets.insert(problem.budgets.begin(), {"size", std::numeric_limits<double>::infinity(), 0, "B"});
  for (int trial = 0; trial < 20; ++trial) {
    for (Item& item : problem.items) {
      for (std::size_t c = 0; c < 2; ++c)
        item.choices[c].costs = {c == 0 ? 4.0 : 1.0, std::exp(random.normal()) * (c == 0 ? 1.0 : 0.3)};
    }
    const auto both = front(problem, 0, 1, 3);
    ASSERT_TRUE(both) << "trial " << trial << ": " << both.error().message;
  }
}

TEST(Pareto, TwoBudgetsBeatNoneOfTheirPoints) {
  Problem problem = two_items();
  problem.budgets.push_back({"latency", 0, 0, "us"});
  for (Item& item : problem.items) {
    for (Choice& choice : item.choices) choice.costs.push_back(30 - choice.costs[0]);  // small is slow
  }
  auto points = front(problem, 0, 1, 6);
  ASSERT_TRUE(points) << points.error().message;
  // Size and latency add up to 60 for every assignment: all but the worse one of size 15 lie on the front.
  EXPECT_EQ(pairs(*points, 0), (std::vector<std::pair<double, double>>{{10, 8}, {15, 4}, {20, 3}, {25, 5}, {30, 1}}));
  for (const FrontPoint& point : *points) EXPECT_EQ(point.answer.costs[0] + point.answer.costs[1], 60);
  EXPECT_FALSE(front(problem, 1, 1, 6));
  EXPECT_EQ(front(problem, 2, 6).error().code, ErrorCode::input);
  EXPECT_EQ(front(problem, 0, 1).error().code, ErrorCode::input);
}

TEST(Pareto, TwentyPointsOf200LayersAndAResolveAreQuick) {
  Problem problem = large_problem(5, 6, 2, 0);
  problem.budgets[1].limit = std::numeric_limits<double>::infinity();
  const std::clock_t start = std::clock();
  auto points = front(problem, 0, 20);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_EQ(points->size(), 20u);
  EXPECT_LT(seconds, 2.0);
  std::printf("front of 20 points, 200 items x 6 choices: %.3f s\n", seconds);
}

TEST(Nearest, TellsWhatOneBudgetAloneOrAllTogetherMustRise) {
  Problem problem;
  problem.budgets = {{"size", 25000, 200, "B"}, {"latency", 60, 0, "us"}};
  problem.items = {{"conv1", {{"w4a8_c", 0.3, {1000, 9}}, {"w8a8_c", 0.1, {2000, 4}}}},
                   {"layer3.2.conv2", {{"w8a8_c", 0.2, {37000, 40}}, {"w4a8_c", 0.5, {18500, 70}}}},
                   {"fc", {{"w4a8_c", 0.05, {500, 2}}, {"w8a8_c", 0.01, {1000, 1}}}}};
  auto nearest = nearest_feasible(problem, solve_ilp);
  ASSERT_TRUE(nearest) << nearest.error().message;
  // Size alone: conv2 at 8 bits, the others at 4: 38,700 B, 51 us, loss 0.3 + 0.2 + 0.05. Latency alone: conv2 at 4
  // bits, the others at 8: 21,700 B, 75 us, loss 0.1 + 0.5 + 0.01. Together: 75 / 60 is 25 % more, 38,700 / 25,000 is
  // 55 %.
  ASSERT_EQ(nearest->raise_one.size(), 2u);
  EXPECT_NEAR(nearest->raise_one[0].needed, 38700, 1e-3);
  EXPECT_NEAR(nearest->raise_one[0].loss, 0.55, 1e-12);
  EXPECT_NEAR(nearest->raise_one[1].needed, 75, 1e-3);
  EXPECT_NEAR(nearest->raise_one[1].loss, 0.61, 1e-12);
  EXPECT_NEAR(nearest->share, 0.25, 1e-3);
  EXPECT_NEAR(nearest->answer.loss, 0.61, 1e-12);
  const std::string text = describe(*nearest, problem);
  EXPECT_NE(text.find("budget.size alone at 38.7 kB (asked 25 kB) allows a loss of 0.55; budget.latency alone at 75 us "
                      "(asked 60 us) allows a loss of 0.61; all limits 25 % higher allow a loss of 0.61"),
            std::string::npos)
      << text;
}

TEST(Nearest, LimitsThatCanBeMetStayAsTheyAre) {
  auto nearest = nearest_feasible(two_items(), solve_ilp);
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->share, 0);
  EXPECT_EQ(nearest->limits, (std::vector<double>{15}));
  EXPECT_DOUBLE_EQ(nearest->answer.loss, 4);
  EXPECT_TRUE(nearest->raise_one.empty());
}

TEST(Nearest, ALimitOfNothingIsRaisedToWhatIsNeeded) {
  Problem problem = two_items();
  problem.budgets[0].limit = 0;
  auto nearest = nearest_feasible(problem, solve_ilp);
  ASSERT_TRUE(nearest) << nearest.error().message;
  EXPECT_NEAR(nearest->limits[0], 10, 1e-3);
  EXPECT_DOUBLE_EQ(nearest->answer.loss, 8);
}

TEST(Nearest, PricesAtTheLeastSizeAreThoseOfTheNextAnswer) {
  // 1000 B is the least there is; 1 % more changes nothing, 4 % pays for 20 B more and saves 4.
  Problem problem = two_items();
  problem.budgets[0].limit = 400;
  problem.items = {{"a", {{"w4", 5, {500}}, {"w8", 1, {520}}}}, {"b", {{"w4", 3, {500}}, {"w8", 2, {900}}}}};
  auto nearest = nearest_feasible(problem, solve_ilp);
  ASSERT_TRUE(nearest) << nearest.error().message;
  EXPECT_NEAR(nearest->limits[0], 1000, 1e-1);
  EXPECT_DOUBLE_EQ(nearest->answer.loss, 8);
  EXPECT_NEAR(nearest->prices[0], 4.0 / 40.0, 1e-5);
}

}  // namespace
}  // namespace ctk::search
