// Ways to place nodes on units, one row each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "search/partition/task.h"

namespace ctk::search::partition {

struct Plan {
  std::vector<std::size_t> unit_of;  // [nodes]
  Cost cost;
  bool proved_optimal = false;
  double bound_us = 0;  // no placement takes less
  double gap_us = 0;    // the objective over the bound, >= 0
};

enum class Objective { total, makespan };  // one thing after the other; units side by side

struct Options {
  std::uint64_t seed = 0;
  Objective objective = Objective::total;
};

double objective_of(const Cost& cost, Objective objective);

struct Solver {
  std::string_view name, what;
  bool is_exact = false;  // for the total, while its states fit
  bool is_seeded = false;
  // The task must have passed check_task(); every node lands on a unit that can run it. Equal costs go to the earlier
  // unit at the first node that differs (exact), or to what was found first. Same answer on every machine.
  Plan (*solve)(const Task& task, const Options& options);
};

std::span<const Solver> solvers();
// Errors: config (unknown name; lists those known).
Result<const Solver*> find_solver(std::string_view name);
// Checks the task, then solves. Errors: as check_task().
Result<Plan> solve(const Task& task, const Solver& solver, const Options& options);

Plan place_by_rules(const Task& task, const Options& options);
Plan place_greedily(const Task& task, const Options& options);
Plan place_exactly(const Task& task, const Options& options);
Plan place_by_annealing(const Task& task, const Options& options);
Plan place_by_breeding(const Task& task, const Options& options);

// For solvers: a plan with its cost and the bound that every node at its quickest gives.
Plan plan_of(const Task& task, std::vector<std::size_t> unit_of, Objective objective);
// Moves single nodes and whole stretches between equal neighbours until none gains.
void improve(const Task& task, std::vector<std::size_t>& unit_of, Objective objective);

}  // namespace ctk::search::partition
