// Evolution: a population of assignments within the limits; children take a stretch of items from either parent,
// mutate, and are repaired. Minimises: the measured loss of whole assignments, or the sum of losses where nothing is
// measured. In:  a Problem, options with a seed. Out: an Assignment; bound and gap are of the sum
// (search/solvers/dual.h). Cost: population x generations repairs of items x choices moves; 200 items x 12 choices x 3
// budgets about a second. Source: the usual genetic algorithm with elitism. Differs: random numbers are counted (one
// stream for each child, named by generation and place), so that no order of work changes them.
#include "search/solvers/evolution.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/random.h"
#include "search/infeasible.h"
#include "search/solvers/core_problem.h"
#include "search/solvers/moves.h"
#include "search/solvers/solvers.h"

namespace ctk::search {
namespace {

using Positions = std::vector<std::size_t>;

constexpr std::size_t kExchangeSteps = 5'000;

class Evolution {
 public:
  Evolution(const Grid& grid, const EvolutionOptions& options) : grid_(grid), options_(options) {}

  // Candidates join the population; with `measure`, those that measurements are left for.
  Status admit(std::vector<Positions> candidates) {
    std::sort(candidates.begin(), candidates.end(),
              [&](const Positions& a, const Positions& b) { return is_better(grid_, a, b); });
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    for (Positions& candidate : candidates) {
      if (known_.contains(candidate)) continue;
      double loss = static_cast<double>(total_of(grid_, candidate).loss);
      if (options_.measure) {
        if (is_spent()) break;
        CTK_TRY(loss, options_.measure(candidate));
        ++measurements_;
        if (!std::isfinite(loss)) {
          return input_error("search.solver: evolution expected a finite measured loss, found " + std::to_string(loss) +
                             ". Measure on data that is not degenerate");
        }
      }
      known_.emplace(candidate, loss);
      population_.push_back(std::move(candidate));
    }
    std::sort(population_.begin(), population_.end(), [&](const Positions& a, const Positions& b) {
      const double loss_a = known_.at(a), loss_b = known_.at(b);
      return loss_a != loss_b ? loss_a < loss_b : is_better(grid_, a, b);
    });
    if (population_.size() > options_.population) population_.resize(options_.population);
    return {};
  }

  std::optional<Positions> child(std::size_t generation, std::size_t place) const {
    Random random(options_.seed, "evolution " + std::to_string(generation) + " " + std::to_string(place));
    const auto pick = [&] {  // the better of two: places are in order of fitness
      return std::min(random.below(population_.size()), random.below(population_.size()));
    };
    Positions made = population_[pick()];
    const Positions& other = population_[pick()];
    const std::size_t n = made.size();
    std::size_t begin = random.below(n), end = random.below(n) + 1;
    if (begin > end) std::swap(begin, end);
    std::copy(other.begin() + static_cast<std::ptrdiff_t>(begin), other.begin() + static_cast<std::ptrdiff_t>(end),
              made.begin() + static_cast<std::ptrdiff_t>(begin));
    for (std::size_t k = 0; k < 1 + n / 50; ++k) {
      const std::size_t item = random.below(n);
      made[item] = random.below(grid_.items[item].size());
    }
    Moves moves(grid_, std::move(made));
    if (!moves.repair()) return std::nullopt;
    // Without measuring, the sum is what counts: finish the descent. With it, half of the children stay off that path.
    if (!options_.measure || random.below(2) == 0) moves.descend();
    return moves.positions();
  }

  bool is_spent() const { return options_.measure && measurements_ >= options_.most_measurements; }
  const std::vector<Positions>& population() const { return population_; }
  double loss_of(const Positions& positions) const { return known_.at(positions); }
  std::size_t measurements() const { return measurements_; }

 private:
  const Grid& grid_;
  const EvolutionOptions& options_;
  std::vector<Positions> population_;  // best first
  std::map<Positions, double> known_;
  std::size_t measurements_ = 0;
};

}  // namespace

Result<Evolved> evolve(const Problem& problem, const EvolutionOptions& options) {
  CTK_CHECK(check_problem(problem));
  if (options.population < 2 || (options.measure && options.most_measurements == 0)) {
    return config_error("search.solver: evolution expected a population of at least 2 and a measurement, found " +
                        std::to_string(options.population) + " and " + std::to_string(options.most_measurements) +
                        ". Raise them");
  }
  const Grid grid = make_grid(problem);
  const Dual dual = best_multipliers(grid);
  if (is_infeasible(grid, dual)) return explain_infeasible(problem, solve_ilp);
  std::vector<Positions> start;
  for (std::size_t k = dual.seen.size(); k-- > 0 && start.size() < options.population / 2;) {
    Moves moves(grid, dual.seen[k]);
    if (!moves.repair()) continue;
    moves.exchange(kExchangeSteps);
    start.push_back(moves.positions());
  }
  if (start.empty()) {
    CTK_TRY(Positions any, any_feasible(problem));
    Moves moves(grid, std::move(any));
    moves.exchange(kExchangeSteps);
    start.push_back(moves.positions());
  }
  Evolution evolution(grid, options);
  CTK_CHECK(evolution.admit(std::move(start)));
  for (std::size_t generation = 0; generation < options.generations && !evolution.is_spent(); ++generation) {
    std::vector<Positions> children;
    for (std::size_t place = 0; place < options.population && !grid.items.empty(); ++place) {
      if (auto made = evolution.child(generation, place)) children.push_back(std::move(*made));
    }
    CTK_CHECK(evolution.admit(std::move(children)));
  }
  Positions best = evolution.population().front();
  const double measured = evolution.loss_of(best);
  if (!options.measure) exchange_ties(grid, best);
  Evolved out;
  out.best = bounded_assignment(problem, grid, best, dual.bounds.bound - dual.bounds.margin);
  out.measured_loss = options.measure ? measured : out.best.loss;
  out.measurements = evolution.measurements();
  return out;
}

Result<Assignment> solve_evolution(const Problem& problem) {
  CTK_TRY(Evolved found, evolve(problem, {}));
  return std::move(found.best);
}

}  // namespace ctk::search
