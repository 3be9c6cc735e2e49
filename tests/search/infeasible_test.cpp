#include "search/infeasible.h"

#include <gtest/gtest.h>

#include "search/solvers/solvers.h"

namespace ctk::search {
namespace {

Problem three_layers() {
  Problem problem;
  problem.budgets = {{"size", 1000, 200, "B"}, {"latency", 1e9, 0, "us"}};
  problem.items = {{"conv1", {{"w4a8_c", 0, {1000, 9}}, {"w8a8_c", 0, {2000, 4}}}},
                   {"layer3.2.conv2", {{"w8a8_c", 0, {37000, 40}}, {"w4a8_c", 0, {18500, 70}}}},
                   {"fc", {{"w4a8_c", 0, {500, 2}}, {"w8a8_c", 0, {1000, 1}}}}};
  return problem;
}

TEST(Infeasible, NamesLeastReachableAndWhoHoldsIt) {
  // 200 fixed + 1000 + 18500 + 500 = 20200.
  auto found = solve_ilp(three_layers());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::budget_infeasible);
  EXPECT_EQ(exit_code(found.error().code), 4);
  EXPECT_EQ(found.error().message,
            "budget.size: expected at most 1 kB, smallest reachable is 20.2 kB (all layers at w4a8_c); held by "
            "layer3.2.conv2 18.5 kB, conv1 1 kB, fc 500 B; raise the budget or allow smaller schemes");
}

TEST(Infeasible, AverageBitsOfLayersThatAllowOnlyEight) {
  // Two layers of 8-bit formats under 4.5 bits on average (FAULTS B075): 8.0 is the least.
  Problem problem;
  problem.budgets = {{"bits", 4.5, 0, ""}};
  problem.items = {{"fc1", {{"w8a8_c", 0, {4}}}}, {"fc2", {{"w8a8_c", 0, {4}}, {"fp16", 0, {8}}}}};
  const Status tight = check_feasible(problem, solve_ilp);
  ASSERT_FALSE(tight);
  EXPECT_NE(tight.error().message.find("smallest reachable is 8 (all layers at w8a8_c); held by fc1 4, fc2 4"),
            std::string::npos)
      << tight.error().message;
  problem.budgets[0].limit = 16;
  EXPECT_TRUE(check_feasible(problem, solve_ilp));
}

TEST(Infeasible, TellsBudgetsThatOnlyFailTogether) {
  Problem problem = three_layers();
  problem.budgets[0].limit = 25000;  // needs layer3.2.conv2 at 4 bits
  problem.budgets[1].limit = 60;     // needs it at 8 bits
  auto found = solve_ilp(problem);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::budget_infeasible);
  const std::string& message = found.error().message;
  EXPECT_EQ(message.rfind("budget.size, budget.latency: each can be met alone, but not together", 0), 0u) << message;
  // At most 60 us: conv2 at 8 bits takes 40, the others at 4 bits 11 more: 200 + 37000 + 1000 + 500.
  EXPECT_NE(message.find("smallest reachable size is 38.7 kB, expected at most 25 kB"), std::string::npos) << message;
  // At most 25 kB: conv2 at 4 bits takes 70, the others at 8 bits 5 more.
  EXPECT_NE(message.find("smallest reachable latency is 75 us, expected at most 60 us"), std::string::npos) << message;
  EXPECT_FALSE(check_feasible(problem, solve_ilp));
}

TEST(Infeasible, ReachListsEveryBudgetWithItsHolders) {
  auto reaches = reach_of(three_layers(), solve_brute_force);
  ASSERT_TRUE(reaches);
  ASSERT_EQ(reaches->size(), 2u);
  EXPECT_EQ((*reaches)[0].least_alone, 20200);
  EXPECT_FALSE((*reaches)[0].is_reachable);
  EXPECT_EQ((*reaches)[1].least_alone, 45);  // 4 + 40 + 1
  EXPECT_TRUE((*reaches)[1].is_reachable);
  EXPECT_EQ((*reaches)[1].holders[0].item, "layer3.2.conv2");
  EXPECT_EQ((*reaches)[1].holders[0].choice, "w8a8_c");
}

TEST(Infeasible, AmountsCloseToTheLimitAreToldApart) {
  Problem problem;
  problem.budgets = {{"size", 137200, 0, "B"}};
  problem.items = {{"fc", {{"w4a8_c", 0, {137201}}}}};
  const Error error = explain_infeasible(problem, nullptr);
  EXPECT_NE(error.message.find("expected at most 137200 B, smallest reachable is 137201 B"), std::string::npos)
      << error.message;
}

TEST(FormatAmount, PicksTheUnitAReaderWants) {
  EXPECT_EQ(format_amount(137200, "B"), "137.2 kB");
  EXPECT_EQ(format_amount(999, "B"), "999 B");
  EXPECT_EQ(format_amount(3.2e6, "B"), "3.2 MB");
  EXPECT_EQ(format_amount(0, "B"), "0 B");
  EXPECT_EQ(format_amount(204.1, "us"), "204.1 us");
  EXPECT_EQ(format_amount(2500, "us"), "2.5 ms");
  EXPECT_EQ(format_amount(8, ""), "8");
}

}  // namespace
}  // namespace ctk::search
