#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <map>

#include "core/parallel.h"
#include "core/random.h"
#include "search/partition/auto_tune.h"
#include "search/partition/explain.h"

namespace ctk::search::partition {
namespace {

// A CPU and an NPU that share nothing: 2 us to start a transfer, 100 bytes a us, 1 us to flush; a launch of the NPU is
// 4 us.
Task empty_task() {
  Task task;
  task.units = {{"cpu", "cpu", 0}, {"npu", "npu", 4}};
  const Link link{2, 100, 1, false};
  task.links = {{link, link}, {link, link}};
  return task;
}

Node node(const std::string& name, const std::string& op, double cpu_us, double npu_us) {
  Node made{name, op, {{cpu_us, "", "", ""}, {npu_us, "", "", ""}}};
  if (std::isinf(npu_us)) made.on[1].reason = "no " + op + " on it";
  return made;
}

// Nodes one after the other, values of 1000 bytes between them, the first from outside, the last an output.
Task chain(std::vector<Node> nodes) {
  Task task = empty_task();
  task.nodes = std::move(nodes);
  for (std::size_t i = 0; i <= task.nodes.size(); ++i) {
    Value value{"v" + std::to_string(i), i == 0 ? kOutside : i - 1, {}, 1000, false, 1};
    if (i < task.nodes.size()) value.consumers = {i};
    value.is_output = i == task.nodes.size();
    task.values.push_back(value);
  }
  return task;
}

TEST(Partition, CountsTransfersLaunchesAndConversions) {
  Task task = chain({node("a", "Conv", 50, 10), node("b", "Conv", 60, 20), node("c", "Softmax", 5, 90)});
  task.nodes[0].on[1].form = task.nodes[1].on[1].form = "int8";
  task.convert_start_us = 1;
  task.convert_bytes_per_us = 500;
  // On npu, npu, cpu: 10 + 20 + 5; in and out 2 x (2 + 10 + 1) = 26; one launch 4; b's int8 read as float: 1 + 2.
  const Cost cost = cost_of(task, {1, 1, 0});
  EXPECT_DOUBLE_EQ(cost.compute_us, 35);
  EXPECT_DOUBLE_EQ(cost.transfer_us, 26);
  EXPECT_DOUBLE_EQ(cost.launch_us, 4);
  EXPECT_DOUBLE_EQ(cost.convert_us, 3);
  EXPECT_DOUBLE_EQ(cost.total_us, 68);
  EXPECT_DOUBLE_EQ(cost.makespan_us, 68);  // a chain has nothing to run side by side
  // The caller gives and takes floats: v0 to int8 takes 1 + 2, and c's result is float already.
  task.outside_form = "float";
  for (Node& each : task.nodes) each.on[0].form = "float";
  EXPECT_DOUBLE_EQ(cost_of(task, {1, 1, 0}).convert_us, 6);
  task.outside_form.clear();
  task.links[0][1].is_shared_memory = task.links[1][0].is_shared_memory = true;  // 2 x (2 + 1)
  EXPECT_DOUBLE_EQ(cost_of(task, {1, 1, 0}).transfer_us, 6);
}

TEST(Partition, AValueMovesOnceToAUnitThatReadsItTwice) {
  Task task = empty_task();
  task.nodes = {node("a", "Relu", 1, 1), node("b", "Conv", 9, 1), node("c", "Conv", 9, 1)};
  task.values = {{"v", 0, {1, 2}, 1000, false, 1}};
  EXPECT_DOUBLE_EQ(cost_of(task, {0, 1, 1}).transfer_us, 13);
  EXPECT_DOUBLE_EQ(cost_of(task, {0, 1, 0}).transfer_us, 13);
  // Side by side, c need not wait for the transfer: a 1, then b at 1 + 13 + 4 + 1 while c ends at 10.
  EXPECT_DOUBLE_EQ(cost_of(task, {0, 1, 0}).makespan_us, 19);
}

TEST(Partition, GreedyFallsIntoTheTrapAndExactDoesNot) {
  // a is 1 us quicker on the CPU, but its two large results are then carried to b and c, which only the NPU runs well.
  Task task = empty_task();
  task.nodes = {node("a", "Conv", 10, 7), node("b", "Conv", 500, 10), node("c", "Conv", 500, 10)};
  task.values = {{"x", 0, {1}, 4000, false, 1}, {"y", 0, {2}, 4000, false, 1}};
  const Plan greedy = place_greedily(task, {}), exact = place_exactly(task, {});
  // a on the NPU costs 7 + 4 > 10. Then 2 x (2 + 40 + 1) of transfers and a launch: 10 + 20 + 86 + 4.
  EXPECT_EQ(greedy.unit_of, (std::vector<std::size_t>{0, 1, 1}));
  EXPECT_DOUBLE_EQ(greedy.cost.total_us, 120);
  EXPECT_EQ(exact.unit_of, (std::vector<std::size_t>{1, 1, 1}));
  EXPECT_DOUBLE_EQ(exact.cost.total_us, 31);
  EXPECT_TRUE(exact.proved_optimal);
}

TEST(Partition, OneUnsupportedOperatorLeavesTheRestOnTheNpu) {
  std::vector<Node> nodes;
  for (int i = 0; i < 10; ++i) nodes.push_back(node("conv" + std::to_string(i), "Conv", 100, 10));
  nodes[5] = node("odd", "Mystery", 3, kCannotRun);
  const Task task = chain(nodes);
  for (const Solver& solver : solvers()) {
    auto plan = solve(task, solver, {});
    ASSERT_TRUE(plan) << plan.error().message;
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(plan->unit_of[i], i == 5 ? 0u : 1u) << solver.name << i;
    const auto fallbacks = fallbacks_of(task, plan->unit_of);
    ASSERT_EQ(fallbacks.size(), 1u);
    EXPECT_EQ(fallbacks[0].reason, "no Mystery on it");
    // 3 us of its own, out and back 2 x 13, and the NPU launched once more: 4.
    EXPECT_DOUBLE_EQ(fallbacks[0].cost_us, 33);
    const auto segments = segments_of(task, plan->unit_of);
    ASSERT_EQ(segments.size(), 3u);
    EXPECT_DOUBLE_EQ(segments[0].compute_us, 50);
    EXPECT_EQ(transfers_of(task, plan->unit_of).size(), 4u);  // in, out, back, out
  }
}

TEST(Partition, RulesGoByKindOfOperator) {
  const Task task =
      chain({node("e", "Gather", 5, 1), node("m", "MatMul", 50, 60), node("n", "LayerNormalization", 5, 1),
             node("q", "Conv", 50, 1), node("r", "Relu", 1, 2), node("s", "Softmax", 5, 1)});
  EXPECT_EQ(place_by_rules(task, {}).unit_of, (std::vector<std::size_t>{0, 1, 0, 1, 1, 0}));
}

// Readers of up to three earlier values; times of each unit drawn apart, some operators impossible off the CPU.
Task random_task(Random& random, std::size_t nodes, std::size_t units, std::size_t reach) {
  Task task;
  task.convert_start_us = 1;
  task.convert_bytes_per_us = 400;
  task.outside_form = random.below(2) == 0 ? "float" : "";
  for (std::size_t u = 0; u < units; ++u)
    task.units.push_back({"u" + std::to_string(u), u == 0 ? "cpu" : u == 1 ? "npu" : "gpu", u * 3.0});
  task.links.assign(units, std::vector<Link>(units));
  for (auto& row : task.links) {
    for (Link& link : row) link = {1 + 4 * random.uniform(), 100 + 200 * random.uniform(), 1, random.below(4) == 0};
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    Node made{"n" + std::to_string(i), random.below(3) == 0 ? "Softmax" : "Conv", {}};
    const double work = 5 + 40 * random.uniform();
    for (std::size_t u = 0; u < units; ++u) {
      NodeTime time{work * (u == 0 ? 1.0 : 0.2 + 0.8 * random.uniform()), u == 1 ? "int8" : "float", "", ""};
      if (u > 0 && random.below(8) == 0) time = {kCannotRun, "", "not built in", ""};
      made.on.push_back(time);
    }
    task.nodes.push_back(std::move(made));
  }
  task.values.push_back({"in", kOutside, {0}, 2000, false, 1});
  for (std::size_t i = 0; i < nodes; ++i) {
    Value value{"v" + std::to_string(i), i, {}, 200 + std::floor(4000 * random.uniform()), i + 1 == nodes, 1};
    for (std::size_t later = i + 1; later < std::min(nodes, i + 1 + reach); ++later) {
      if (later == i + 1 || random.below(4) == 0) value.consumers.push_back(later);
    }
    task.values.push_back(std::move(value));
  }
  return task;
}

double brute_force(const Task& task) {
  double best = kCannotRun;
  std::vector<std::size_t> units(task.nodes.size(), 0);
  for (bool is_more = true; is_more;) {
    best = std::min(best, cost_of(task, units).total_us);
    is_more = false;
    for (std::size_t i = units.size(); i-- > 0 && !is_more;) {
      is_more = ++units[i] < task.units.size();
      if (!is_more) units[i] = 0;
    }
  }
  return best;
}

TEST(Partition, GapsToTheOptimumOn200RandomGraphs) {
  Random random(200, "partition");
  std::map<std::string_view, std::vector<double>> gaps;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed 200, round " + std::to_string(round));
    const std::size_t nodes = 8 + random.below(7);
    const Task task = random_task(random, nodes, nodes <= 8 && round % 2 == 0 ? 3 : 2, 5);
    const double best = brute_force(task);
    for (const Solver& solver : solvers()) {
      auto plan = solve(task, solver, {});
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_GE(plan->cost.total_us, best * (1 - 1e-12)) << solver.name;
      EXPECT_LE(plan->bound_us, best * (1 + 1e-12)) << solver.name;
      EXPECT_DOUBLE_EQ(plan->gap_us, plan->cost.total_us - plan->bound_us);
      if (solver.is_exact) {
        EXPECT_TRUE(plan->proved_optimal);
        EXPECT_NEAR(plan->cost.total_us, best, 1e-9 * best);
      }
      gaps[solver.name].push_back(plan->cost.total_us / best - 1);
    }
  }
  const std::map<std::string_view, double> allowed{
      {"exact", 1e-9}, {"annealing", 0.01}, {"genetic", 0.01}, {"greedy", 0.25}, {"rules", 1.0}};
  for (const auto& [name, all] : gaps) {
    double sum = 0, most = 0;
    int met = 0;
    for (double gap : all) {
      sum += gap;
      most = std::max(most, gap);
      met += gap < 1e-9;
    }
    const double mean = sum / static_cast<double>(all.size());
    std::printf("%.*s: mean gap %.2f %%, worst %.2f %%, optimum in %d of %zu\n", static_cast<int>(name.size()),
                name.data(), 100 * mean, 100 * most, met, all.size());
    EXPECT_LE(mean, allowed.at(name)) << name;
  }
}

TEST(Partition, FiveHundredNodesTakeSeconds) {
  Random random(500, "partition large");
  for (const std::size_t reach : {1, 4, 12}) {
    const Task task = random_task(random, 500, 3, reach);
    double best = kCannotRun;
    for (const Solver& solver : solvers()) {
      const std::clock_t start = std::clock();
      auto plan = solve(task, solver, {});
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_LT(seconds, 5.0) << solver.name;
      if (solver.is_exact) best = plan->cost.total_us;
      EXPECT_GE(plan->cost.total_us, best * (1 - 1e-12)) << solver.name;
      if (solver.is_exact && reach <= 4) {
        EXPECT_TRUE(plan->proved_optimal);
      }
      std::printf("500 nodes, reach %zu, %.*s: %.3f s, %.1f us, gap %.2f %%\n", reach,
                  static_cast<int>(solver.name.size()), solver.name.data(), seconds, plan->cost.total_us,
                  100 * plan->gap_us / plan->cost.total_us);
    }
  }
}

TEST(Partition, SeedsAndThreadsDoNotChangeWhatTheyMustNot) {
  Random random(3, "partition seeds");
  const Task task = random_task(random, 60, 3, 4);
  const int before = threads();
  for (const Solver& solver : solvers()) {
    set_threads(1);
    const auto alone = solve(task, solver, {7, Objective::total});
    set_threads(3);
    const auto together = solve(task, solver, {7, Objective::total});
    EXPECT_EQ(alone->unit_of, together->unit_of) << solver.name;
  }
  set_threads(before);
}

TEST(Partition, MakespanSpreadsIndependentBranches) {
  // Two branches of equal work after one node: side by side each unit takes one, one after the other the NPU takes
  // both.
  Task task = empty_task();
  task.nodes = {node("a", "Relu", 1, 1), node("b", "Conv", 60, 50), node("c", "Conv", 60, 50)};
  task.values = {{"v", 0, {1, 2}, 100, false, 1}};
  EXPECT_EQ(place_exactly(task, {0, Objective::total}).unit_of, (std::vector<std::size_t>{1, 1, 1}));
  for (const Solver& solver : solvers()) {
    if (solver.name == "rules" || solver.name == "greedy") continue;
    const Plan plan = solver.solve(task, {0, Objective::makespan});
    EXPECT_NE(plan.unit_of[1], plan.unit_of[2]) << solver.name;
    EXPECT_LT(plan.cost.makespan_us, 70) << solver.name;
  }
}

TEST(Partition, WrongTasksAreNamed) {
  const auto said = [](const Task& task) {
    auto found = solve(task, solvers()[0], {});
    return found ? std::string("nothing") : found.error().message;
  };
  Task task = chain({node("a", "Conv", 1, 1), node("b", "Odd", 1, 1)});
  Task bad = task;
  bad.nodes[0].on[1].us = std::nan("");
  EXPECT_NE(said(bad).find("node \"a\" (Conv): expected a time >= 0 us on \"npu\", found nan"), std::string::npos);
  bad.nodes[0].on[1].us = -3;
  EXPECT_NE(said(bad).find("on \"npu\", found -3"), std::string::npos) << said(bad);
  bad = task;
  bad.nodes[1].on = {{kCannotRun, "", "too large", ""}, {kCannotRun, "", "no Odd on it", ""}};
  EXPECT_NE(
      said(bad).find("node \"b\" (Odd): expected a unit that can run it, found none (cpu: too large; npu: no Odd on "
                     "it). Add a unit"),
      std::string::npos)
      << said(bad);
  bad = task;
  bad.values[1].consumers = {7};
  EXPECT_NE(said(bad).find("value \"v1\": expected readers below 2, found 7"), std::string::npos) << said(bad);
  bad = task;
  bad.values[1].bytes = -1;
  EXPECT_NE(said(bad).find("expected bytes >= 0, found -1"), std::string::npos);
  bad = task;
  bad.links[0][1].bytes_per_us = 0;
  EXPECT_NE(said(bad).find("link from \"cpu\" to \"npu\": expected a bandwidth above 0"), std::string::npos);
  bad = task;
  bad.units[1].launch_us = std::nan("");
  EXPECT_NE(said(bad).find("unit \"npu\": expected a launch time >= 0 us, found nan"), std::string::npos);
  bad = task;
  bad.values.push_back({"back", 1, {0}, 10, false, 1});
  EXPECT_NE(said(bad).find("its producer \"b\" before its reader \"a\""), std::string::npos) << said(bad);
  auto sorted = sort_nodes(bad);
  ASSERT_FALSE(sorted);
  EXPECT_NE(sorted.error().message.find("a cycle through or before \"a\", \"b\""), std::string::npos);
  EXPECT_EQ(find_solver("magic").error().code, ErrorCode::config);
}

TEST(Partition, SortsNodesSoThatProducersComeFirst) {
  Task task = chain({node("a", "Conv", 1, 1), node("b", "Conv", 1, 1), node("c", "Conv", 1, 1)});
  std::swap(task.nodes[0], task.nodes[2]);
  task.values[0].consumers = {2};
  task.values[1] = {"v1", 2, {1}, 1000, false, 1};
  task.values[2] = {"v2", 1, {0}, 1000, false, 1};
  task.values[3].producer = 0;
  ASSERT_TRUE(sort_nodes(task));
  EXPECT_EQ(task.nodes[0].name + task.nodes[1].name + task.nodes[2].name, "abc");
  EXPECT_TRUE(check_task(task));
  EXPECT_EQ(task.values[2].consumers, (std::vector<std::size_t>{2}));
}

TEST(AutoTune, CorrectsTransfersAndNodesThatTakeTooLong) {
  // Predicted: both on the NPU. In truth its transfers take ten times as long, and the CPU is the better place.
  const Task predicted = chain({node("a", "Conv", 60, 10), node("b", "Conv", 60, 10)});
  Task truth = predicted;
  for (Value& value : truth.values) value.transfer_scale = 10;
  const auto run = [&](const Plan& plan) -> Result<Profile> {
    Profile profile;
    for (std::size_t i = 0; i < truth.nodes.size(); ++i)
      profile.node_us.push_back(truth.nodes[i].on[plan.unit_of[i]].us);
    profile.value_us.assign(truth.values.size(), {0, 0});
    for (const Transfer& transfer : transfers_of(truth, plan.unit_of))
      profile.value_us[transfer.value][transfer.to] = transfer.us;
    profile.total_us = cost_of(truth, plan.unit_of).total_us;
    return profile;
  };
  const Solver& exact = **find_solver("exact");
  auto tuned = auto_tune(predicted, exact, {}, run, 5);
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->plan.unit_of, (std::vector<std::size_t>{0, 0}));
  EXPECT_DOUBLE_EQ(tuned->measured_us, 120);
  ASSERT_FALSE(tuned->notes.empty());
  EXPECT_EQ(tuned->notes[0], "value v0 to npu: predicted 13 us, took 130 us");
  // A node that takes most of its segment: predicted 10 us, took 300.
  truth = predicted;
  truth.nodes[0].on[1].us = 300;
  tuned = auto_tune(predicted, exact, {}, run, 5);
  ASSERT_TRUE(tuned);
  EXPECT_EQ(tuned->notes[0], "node a on npu: predicted 10 us, took 300 us");
  EXPECT_EQ(tuned->plan.unit_of[0], 0u);
  // What was predicted well stays.
  truth = predicted;
  tuned = auto_tune(predicted, exact, {}, run, 5);
  EXPECT_EQ(tuned->rounds, 1);
  EXPECT_TRUE(tuned->notes.empty());
  const auto wrong = [](const Plan&) -> Result<Profile> { return Profile{{1}, {}, 1}; };
  EXPECT_EQ(auto_tune(predicted, exact, {}, wrong, 5).error().code, ErrorCode::input);
}

}  // namespace
}  // namespace ctk::search::partition
