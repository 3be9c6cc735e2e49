// Device cards: what a target can run. The file behind `target: configs/targets/cpu.yaml`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compress/units.h"
#include "core/quant_scheme.h"
#include "core/result.h"

namespace ctk::pipeline {

struct TargetCard {
  std::string name;
  std::string kind = "cpu";          // cpu, gpu, npu
  int threads = 0;                   // 0 = as the pipeline says
  std::vector<QuantScheme> schemes;  // it has kernels for; empty = every scheme we have
};

// A closed world like the pipeline file. Errors: config (all problems, one a line), input (the file cannot be read).
Result<TargetCard> load_target(const std::string& path);

}  // namespace ctk::pipeline
