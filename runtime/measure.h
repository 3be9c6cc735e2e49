// Times of a graph and of its layers, by the very plan that runs it. One sample, current thread count.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/cpu_executor.h"

namespace ctk::runtime {

struct LatencyFigure {
  double median_us = 0, p95_us = 0, least_us = 0;
  std::size_t runs = 0;
  double median_cycles = 0;  // of the calling thread (core/cycle_counter.h); 0: nothing counts them
};

struct MeasureOptions {
  double seconds = 0.5;  // per executor, warm-up apart
  std::size_t least_runs = 20, most_runs = 2000;
  std::size_t warm_up_runs = 5;
};

// Whole runs of several executors, taken in turn (A B C A B C ...), so that a slow minute of the machine meets all.
// Inputs are those of the executor's last run, or zeros before the first.
Result<std::vector<LatencyFigure>> measure_interleaved(std::span<CpuExecutor* const> executors,
                                                       const MeasureOptions& options);

// Time of each step of a plan; layers by node, the rest (conversions, pools, ...) under an invalid node.
struct StepTime {
  graph::NodeId node;
  std::string label, row;
  double median_us = 0, least_us = 0;
};
// Same interleaving over several executors; one list each, in step order.
Result<std::vector<std::vector<StepTime>>> measure_steps(std::span<CpuExecutor* const> executors,
                                                         const MeasureOptions& options);

double median_of(std::vector<double> values);
double percentile_of(std::vector<double> values, double percent);

}  // namespace ctk::runtime
