// What this machine can do at most: the denominators of every share of a limit.
#pragma once

#include "core/result.h"

namespace ctk::pipeline::estimate {

struct MachineLimits {
  double bandwidth_gb_s = 0;  // of reading memory far past the caches
  double peak_gops = 0;       // 10^9 operations a second, 2 a multiply-add, uint8 by int8 (kernels/gemm_w8a8)
};

// The best of some passes with all threads of core/parallel; takes a second. Errors: input (no memory for 256 MB).
Result<MachineLimits> measure_limits();

}  // namespace ctk::pipeline::estimate
