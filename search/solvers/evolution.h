// Evolution over whole assignments, for losses that do not add up: candidates can be measured as a whole.
#pragma once

#include <cstdint>
#include <functional>

#include "search/problem.h"

namespace ctk::search {

struct EvolutionOptions {
  std::uint64_t seed = 0;
  std::size_t population = 24;
  std::size_t generations = 12;
  // The true loss of choices [items]; asked at most `most_measurements` times, never twice for the same choices, best
  // predicted first. None: the problem's own sum decides. Its errors end the search and are returned.
  std::function<Result<double>(const std::vector<std::size_t>& choices)> measure;
  std::size_t most_measurements = 40;
};

struct Evolved {
  Assignment best;           // bound and gap are of the summed loss
  double measured_loss = 0;  // what `measure` said of it; the summed loss without
  std::size_t measurements = 0;
};

// Ties go by the rule of search/solvers/solvers.h. The same seed gives the same answer on any machine and thread count.
// Errors: as every solver's, and those of `measure`; input (measured loss not finite).
Result<Evolved> evolve(const Problem& problem, const EvolutionOptions& options);

}  // namespace ctk::search
