// Solves, looks at a profile of the run, corrects what the costs got wrong where it matters, and solves again.
#pragma once

#include <functional>

#include "search/partition/solvers.h"

namespace ctk::search::partition {

// What a run of a plan took.
struct Profile {
  std::vector<double> node_us;                // [nodes]
  std::vector<std::vector<double>> value_us;  // [values][units], to bring the value there; 0 where none was brought
  double total_us = 0;
};

struct Tuned {
  Task task;  // with corrected costs
  Plan plan;  // the quickest by its profile
  double measured_us = 0;
  int rounds = 0;
  std::vector<std::string> notes;  // "node conv1 on npu: predicted 3 us, took 9 us"
};

// A value is looked at when bringing it takes more than kMostTransfer of the time of the segment that waits for it, a
// node when it takes more than kMostNode of its segment; then what was measured replaces what was predicted.
constexpr double kMostTransfer = 0.3, kMostNode = 0.5;

// `run` runs a plan once. Ends when nothing is left to correct, a plan comes back that was run before, or after
// `most_rounds` runs.
// Errors: as check_task(), those of `run`, input (a profile of other lengths, or of times that are none).
Result<Tuned> auto_tune(Task task, const Solver& solver, const Options& options,
                        const std::function<Result<Profile>(const Plan&)>& run, int most_rounds);

}  // namespace ctk::search::partition
