// The slower of memory and arithmetic: no run can be faster (Williams, Waterman, Patterson, CACM 2009).
#pragma once

#include <algorithm>

namespace ctk::pipeline::estimate {

// What a unit can do at most.
struct Limits {
  double bandwidth_gb_s = 0;  // of its memory
  double peak_gops = 0;       // 10^9 operations a second, 2 a multiply-add; 0: not known
};

struct Bound {
  double bytes = 0, ops = 0;
  double memory_us = 0, compute_us = 0;
  double us() const { return std::max(memory_us, compute_us); }
  bool is_memory_bound() const { return memory_us >= compute_us; }
};

// Of reading `bytes` and doing `ops` operations. 1 GB/s is 1e3 bytes a us, 10^9 operations a second are 1e3 a us.
inline Bound bound_of(const Limits& limits, double bytes, double ops) {
  return {bytes, ops, bytes / (limits.bandwidth_gb_s * 1e3), limits.peak_gops > 0 ? ops / (limits.peak_gops * 1e3) : 0};
}

}  // namespace ctk::pipeline::estimate
