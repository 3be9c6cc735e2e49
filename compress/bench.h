// Benchmarks: kernels by suite, or a model as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "kernels/npu/machine.h"

namespace ctk::pipeline {

struct BenchOptions {
  std::string suite;                 // a name of bench_suites(); empty with `model`
  bool quick = false;                // of a suite: the small shapes only
  std::string model;                 // an .onnx file, a bundle, a checkpoint's folder
  std::int64_t size = 0;             // of dimensions the model leaves open; 0: there must be none
  bool layers = false;               // of a model: a row for each step, too
  std::vector<std::string> against;  // peers to measure in turn with a model: "onnxruntime"
  std::string target;                // device card of an npu to run the model's integer layers on; "": none
  int threads = 1;
  double seconds = 0.5;  // at least so long a row, after a warm-up
};

// One measured row: times of one operation, bytes of weights it reads, operations it does (2 a multiply-add).
struct BenchRow {
  std::string row, peer = "ours", variant;
  int threads = 1;
  double min_us = 0, med_us = 0;
  std::int64_t n = 0, bytes = 0, ops = 0;
  double base_mb = 0, rss_mb = 0;                             // of loads only: most memory held before and after
  std::optional<kernels::npu::Counts> counts = std::nullopt;  // of a simulated npu; times are these cycles
  std::string reason = {};                                    // why a step is not on the npu
  double p95_us = 0;                                          // 0: not taken
  double cpu_cycles = 0;                                      // of the calling thread, the median; 0: not counted
};

// Calls `emit` for each row as it is done. Errors: config (unknown suite; lists the known), input.
Status run_bench(const BenchOptions& options, const std::function<void(const BenchRow&)>& emit);

// The part behind BenchOptions::target: "npu.<layer>" counted, "cpu.<step>" measured with the reason it stayed,
// "transfer.<value>" from the card, and the totals of each. Errors: config (the card), internal (other bits than the
// processor's), input.
Status bench_on_npu(const BenchOptions& options, const std::function<void(const BenchRow&)>& emit);

}  // namespace ctk::pipeline
