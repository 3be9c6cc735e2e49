#include "runtime/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/cycle_counter.h"

namespace ctk::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

// Rounds that fit the time budget, judged by one round after warm-up.
Result<std::size_t> round_count(std::span<CpuExecutor* const> executors, const MeasureOptions& options) {
  for (CpuExecutor* executor : executors) {
    for (std::size_t i = 0; i < options.warm_up_runs; ++i) {
      executor->restore_inputs();
      CTK_CHECK(executor->run_steps());
    }
  }
  for (CpuExecutor* executor : executors) executor->restore_inputs();
  const auto start = Clock::now();
  for (CpuExecutor* executor : executors) CTK_CHECK(executor->run_steps());
  const double round_us = std::max(1.0, microseconds(start, Clock::now()));
  const double budget_us = options.seconds * 1e6 * static_cast<double>(executors.size());
  return std::clamp(static_cast<std::size_t>(budget_us / round_us), options.least_runs, options.most_runs);
}

}  // namespace

double percentile_of(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = percent / 100.0 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double share = place - std::floor(place);
  return values[below] * (1 - share) + values[above] * share;
}

double median_of(std::vector<double> values) {
  return percentile_of(std::move(values), 50);
}

Result<std::vector<LatencyFigure>> measure_interleaved(std::span<CpuExecutor* const> executors,
                                                       const MeasureOptions& options) {
  CTK_TRY(const std::size_t rounds, round_count(executors, options));
  std::vector<std::vector<double>> times(executors.size()), cycles(executors.size());
  const auto counter = CycleCounter::open();
  for (std::size_t r = 0; r < rounds; ++r) {
    for (std::size_t e = 0; e < executors.size(); ++e) {
      executors[e]->restore_inputs();
      const std::uint64_t count = counter ? counter->read() : 0;
      const auto start = Clock::now();
      CTK_CHECK(executors[e]->run_steps());
      times[e].push_back(microseconds(start, Clock::now()));
      if (counter) cycles[e].push_back(static_cast<double>(counter->read() - count));
    }
  }
  std::vector<LatencyFigure> figures;
  for (std::size_t e = 0; e < executors.size(); ++e) {
    const std::vector<double>& t = times[e];
    figures.push_back({median_of(t), percentile_of(t, 95), *std::min_element(t.begin(), t.end()), t.size(),
                       median_of(std::move(cycles[e]))});
  }
  return figures;
}

Result<std::vector<std::vector<StepTime>>> measure_steps(std::span<CpuExecutor* const> executors,
                                                         const MeasureOptions& options) {
  CTK_TRY(const std::size_t rounds, round_count(executors, options));
  std::vector<std::vector<std::vector<double>>> times(executors.size());
  for (std::size_t e = 0; e < executors.size(); ++e) times[e].resize(executors[e]->plan().steps.size());
  for (std::size_t r = 0; r < rounds; ++r) {
    for (std::size_t e = 0; e < executors.size(); ++e) {
      const auto& steps = executors[e]->plan().steps;
      executors[e]->restore_inputs();
      auto before = Clock::now();
      for (std::size_t s = 0; s < steps.size(); ++s) {
        CTK_CHECK(steps[s]->run(executors[e]->context()));
        const auto after = Clock::now();
        times[e][s].push_back(microseconds(before, after));
        before = after;
      }
    }
  }
  std::vector<std::vector<StepTime>> result(executors.size());
  for (std::size_t e = 0; e < executors.size(); ++e) {
    const auto& steps = executors[e]->plan().steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const double least = *std::ranges::min_element(times[e][s]);
      result[e].push_back({steps[s]->node, steps[s]->label, steps[s]->row, median_of(std::move(times[e][s])), least});
    }
  }
  return result;
}

}  // namespace ctk::runtime
