#include "search/partition/solvers.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ctk::search::partition {
namespace {

constexpr std::array<Solver, 5> kSolvers{{
    {"exact", "dynamic programme over the nodes in order; proves the least total", true, false, place_exactly},
    {"rules", "a rule for each kind of operator", false, false, place_by_rules},
    {"greedy", "node after node, the unit that costs least so far", false, false, place_greedily},
    {"annealing", "simulated annealing of stretches of nodes", false, true, place_by_annealing},
    {"genetic", "placements bred and selected", false, true, place_by_breeding},
}};

// A bound for either objective: every node at its quickest; side by side the work is shared at best.
double least_of(const Task& task, Objective objective) {
  double sum = 0, longest = 0;
  for (const Node& node : task.nodes) {
    double least = kCannotRun;
    for (const NodeTime& time : node.on) least = std::min(least, time.us);
    sum += least;
    longest = std::max(longest, least);
  }
  return objective == Objective::total ? sum : std::max(longest, sum / static_cast<double>(task.units.size()));
}

}  // namespace

double objective_of(const Cost& cost, Objective objective) {
  return objective == Objective::total ? cost.total_us : cost.makespan_us;
}

Plan plan_of(const Task& task, std::vector<std::size_t> unit_of, Objective objective) {
  Plan plan;
  plan.cost = cost_of(task, unit_of);
  plan.unit_of = std::move(unit_of);
  const double reached = objective_of(plan.cost, objective);
  plan.bound_us = std::min(reached, least_of(task, objective));
  plan.gap_us = reached - plan.bound_us;
  plan.proved_optimal = plan.gap_us == 0;
  return plan;
}

void improve(const Task& task, std::vector<std::size_t>& unit_of, Objective objective) {
  double best = objective_of(cost_of(task, unit_of), objective);
  const std::size_t n = unit_of.size();
  for (bool is_better = true; is_better;) {
    is_better = false;
    for (std::size_t begin = 0; begin < n; ++begin) {
      // The node alone, then the run of equal units it starts.
      std::size_t run = begin + 1;
      while (run < n && unit_of[run] == unit_of[begin]) ++run;
      for (const std::size_t end : {begin + 1, run}) {
        for (std::size_t unit = 0; unit < task.units.size(); ++unit) {
          if (unit == unit_of[begin]) continue;
          std::vector<std::size_t> trial = unit_of;
          for (std::size_t i = begin; i < end; ++i) {
            if (std::isfinite(task.nodes[i].on[unit].us)) trial[i] = unit;
          }
          if (trial == unit_of) continue;
          const double cost = objective_of(cost_of(task, trial), objective);
          if (cost >= best * (1 - 1e-12)) continue;
          best = cost;
          unit_of = std::move(trial);
          is_better = true;
        }
        if (end == run && run == begin + 1) break;
      }
    }
  }
}

std::span<const Solver> solvers() {
  return kSolvers;
}

Result<const Solver*> find_solver(std::string_view name) {
  std::string known;
  for (const Solver& solver : kSolvers) {
    if (solver.name == name) return &solver;
    known += (known.empty() ? "" : ", ") + std::string(solver.name);
  }
  return config_error("partition.solver: expected one of " + known + ", found \"" + std::string(name) +
                      "\". Choose one of these");
}

Result<Plan> solve(const Task& task, const Solver& solver, const Options& options) {
  CTK_CHECK(check_task(task));
  return solver.solve(task, options);
}

}  // namespace ctk::search::partition
