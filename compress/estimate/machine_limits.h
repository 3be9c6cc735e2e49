// What this machine can do at most: the denominators of every share of a limit.
#pragma once

#include "compress/estimate/roofline.h"
#include "core/result.h"

namespace ctk::pipeline::estimate {

// Rate of reading memory far past the caches, and of uint8 by int8 products (kernels/gemm_w8a8): the best of some
// passes with all threads of core/parallel; takes a second. Errors: input (no memory for 256 MB).
Result<Limits> measure_limits();

}  // namespace ctk::pipeline::estimate
