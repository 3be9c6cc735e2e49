#include "compress/bench_suites/timing.h"

#include <algorithm>
#include <chrono>

#include "runtime/measure.h"

namespace ctk::pipeline {
namespace {

constexpr std::size_t kLeastRuns = 4, kMostRuns = 3000;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void time_row(double seconds, std::size_t operations, const std::function<void()>& body, BenchRow& row) {
  body();
  body();
  std::vector<double> times;
  const double end = now_seconds() + seconds;
  while (times.size() < kLeastRuns || (now_seconds() < end && times.size() < kMostRuns)) {
    const double start = now_seconds();
    body();
    times.push_back((now_seconds() - start) * 1e6 / static_cast<double>(operations));
  }
  row.min_us = *std::min_element(times.begin(), times.end());
  row.med_us = runtime::median_of(times);
  row.p95_us = runtime::percentile_of(times, 95);
  row.n = static_cast<std::int64_t>(times.size());
}

}  // namespace ctk::pipeline
