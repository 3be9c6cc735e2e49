// Timing the suites share.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "compress/bench.h"

namespace ctk::pipeline {

// Wall times of `body`, which does `operations` operations: after a warm-up at least four runs and `seconds`. Fills the
// times and the count of `row`.
void time_row(double seconds, std::size_t operations, const std::function<void()>& body, BenchRow& row);

}  // namespace ctk::pipeline
