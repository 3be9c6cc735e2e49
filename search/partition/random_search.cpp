// Annealing and breeding: seeded searches that change stretches of nodes, since borders are what costs.
// Minimises: the objective asked for. In: a Task. Out: a Plan; no bound beyond every node at its quickest.
// Cost: a few thousand evaluations, each nodes + values.
// Source: Kirkpatrick et al., "Optimization by simulated annealing", 1983; the usual genetic algorithm with elitism.
// Differs: both start from the rules, the greedy placement and every unit as far as it goes, and end by descent.
#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "search/partition/solvers.h"

namespace ctk::search::partition {
namespace {

using Units = std::vector<std::size_t>;

constexpr std::size_t kLeastSteps = 6000, kStepsPerNode = 40;
constexpr std::size_t kPopulation = 32, kGenerations = 80;
constexpr std::size_t kLargest = 150;  // nodes up to which the last descent is affordable

// Every node on one unit as far as it can, elsewhere at its quickest.
Units all_on(const Task& task, std::size_t unit) {
  Units units;
  for (const Node& node : task.nodes) {
    std::size_t best = unit;
    for (std::size_t u = 0; u < node.on.size(); ++u) {
      if (!std::isfinite(node.on[best].us) || (best != unit && node.on[u].us < node.on[best].us)) best = u;
    }
    units.push_back(best);
  }
  return units;
}

std::vector<Units> starts_of(const Task& task, const Options& options) {
  std::vector<Units> starts{place_by_rules(task, options).unit_of, place_greedily(task, options).unit_of};
  for (std::size_t u = 0; u < task.units.size(); ++u) starts.push_back(all_on(task, u));
  return starts;
}

// A stretch goes to one unit, nodes that cannot run there stay.
void mutate(const Task& task, Units& units, Random& random) {
  const std::size_t n = units.size();
  const std::size_t begin = random.below(n);
  // Half of the stretches are single nodes, the rest of any length.
  const std::size_t end = random.below(2) == 0 ? begin + 1 : begin + 1 + random.below(n - begin);
  const std::size_t unit = random.below(task.units.size());
  for (std::size_t i = begin; i < end; ++i) {
    if (std::isfinite(task.nodes[i].on[unit].us)) units[i] = unit;
  }
}

Plan finish(const Task& task, Units best, const Options& options) {
  if (best.size() <= kLargest) improve(task, best, options.objective);
  return plan_of(task, std::move(best), options.objective);
}

}  // namespace

Plan place_by_annealing(const Task& task, const Options& options) {
  if (task.nodes.empty()) return plan_of(task, {}, options.objective);
  const auto value_of = [&](const Units& units) { return objective_of(cost_of(task, units), options.objective); };
  Units best;
  double best_value = kCannotRun;
  for (Units& start : starts_of(task, options)) {
    const double value = value_of(start);
    if (value >= best_value) continue;
    best_value = value;
    best = std::move(start);
  }
  Random random(options.seed, "partition annealing");
  Units now = best;
  double value = best_value;
  const std::size_t steps = std::max(kLeastSteps, kStepsPerNode * now.size());
  for (std::size_t step = 0; step < steps; ++step) {
    const double left = 1 - static_cast<double>(step) / static_cast<double>(steps);
    const double temperature = 0.05 * best_value * left * left + 1e-300;
    Units trial = now;
    mutate(task, trial, random);
    const double chance = random.uniform();
    if (trial == now) continue;
    const double trial_value = value_of(trial);
    if (trial_value > value && chance >= std::exp((value - trial_value) / temperature)) continue;
    now = std::move(trial);
    value = trial_value;
    if (value >= best_value) continue;
    best_value = value;
    best = now;
  }
  return finish(task, std::move(best), options);
}

Plan place_by_breeding(const Task& task, const Options& options) {
  if (task.nodes.empty()) return plan_of(task, {}, options.objective);
  struct One {
    double value;
    Units units;
  };
  std::vector<One> population;
  const auto admit = [&](Units units) {
    for (const One& other : population) {
      if (other.units == units) return;
    }
    const double value = objective_of(cost_of(task, units), options.objective);
    population.push_back({value, std::move(units)});
  };
  for (Units& start : starts_of(task, options)) admit(std::move(start));
  for (std::size_t generation = 0; generation < kGenerations; ++generation) {
    const std::size_t parents = population.size();
    for (std::size_t place = 0; place < kPopulation; ++place) {
      Random random(options.seed, "partition genetic " + std::to_string(generation) + " " + std::to_string(place));
      const auto pick = [&] { return std::min(random.below(parents), random.below(parents)); };
      Units child = population[pick()].units;
      const Units& other = population[pick()].units;
      const std::size_t begin = random.below(child.size()), end = begin + random.below(child.size() - begin + 1);
      std::copy(other.begin() + static_cast<std::ptrdiff_t>(begin), other.begin() + static_cast<std::ptrdiff_t>(end),
                child.begin() + static_cast<std::ptrdiff_t>(begin));
      mutate(task, child, random);
      admit(std::move(child));
    }
    std::stable_sort(population.begin(), population.end(),
                     [](const One& a, const One& b) { return a.value < b.value; });
    if (population.size() > kPopulation) population.resize(kPopulation);
  }
  return finish(task, std::move(population.front().units), options);
}

}  // namespace ctk::search::partition
