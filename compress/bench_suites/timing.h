// Timing and memory the suites share.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "compress/bench.h"

namespace ctk::pipeline {

// Wall times of `body`, which does `operations` operations: after a warm-up at least four runs and `seconds`. Fills the
// times and the count of `row`.
void time_row(double seconds, std::size_t operations, const std::function<void()>& body, BenchRow& row);

// Zeroed memory on 2 MiB pages where the system grants them: they are worth a quarter of the bandwidth.
class PageBuffer {
 public:
  explicit PageBuffer(std::size_t bytes);
  PageBuffer(const PageBuffer&) = delete;
  PageBuffer& operator=(const PageBuffer&) = delete;
  ~PageBuffer();
  // Null when the system has no such memory left.
  char* data() { return data_; }

 private:
  std::size_t bytes_ = 0;
  char* data_ = nullptr;
};

}  // namespace ctk::pipeline
