// Device cards: what a target can run. The file behind `target: configs/targets/cpu.yaml`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compress/units.h"
#include "core/quant_scheme.h"
#include "core/result.h"
#include "kernels/npu/machine.h"

namespace ctk::pipeline {

struct TargetCard {
  std::string name;
  std::string kind = "cpu";          // cpu, gpu, npu
  int threads = 0;                   // 0 = as the pipeline says
  std::vector<QuantScheme> schemes;  // it has kernels for; empty = every scheme we have

  // Of a gpu or npu, for `compress partition`: what its operators take and what reaching it costs.
  double peak_gops = 0;       // 10^9 operations a second (2 a multiply-add) in its first scheme
  double bandwidth_gb_s = 0;  // of its own memory
  double launch_us = 0;       // of a segment of nodes
  double transfer_start_us = 0, transfer_gb_s = 0, transfer_flush_us = 0;
  bool has_shared_memory = false;  // values are passed by pointer
  std::vector<std::string> ops;    // operators it runs, by ONNX name

  // Of an npu whose inside is known: what kernels/npu simulates. Without it times are those of the figures above.
  std::optional<kernels::npu::Card> machine;

  // What moving one value to it or back takes.
  double transfer_us(double bytes) const {
    return transfer_start_us + transfer_flush_us + (has_shared_memory ? 0 : bytes / (transfer_gb_s * 1e3));
  }
};

// A closed world like the pipeline file. What runs on it: a pipeline needs a unit this build has kernels for, a
// partition takes any, an estimate needs figures of memory and arithmetic.
// Errors: config (all problems, one a line), input (the file cannot be read).
enum class TargetUse { pipeline, partition, estimate };
Result<TargetCard> load_target(const std::string& path, TargetUse use = TargetUse::pipeline);

}  // namespace ctk::pipeline
