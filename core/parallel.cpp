#include "core/parallel.h"

#include <omp.h>

#include <algorithm>

namespace ctk {
namespace {
int g_threads = 1;
}

void set_threads(int threads) {
  g_threads = std::max(1, threads);
}

int threads() {
  return g_threads;
}

int thread_index() {
  return omp_get_thread_num();
}

namespace detail {

void parallel_for(std::size_t count, std::size_t grain, void (*body)(void*, std::size_t, std::size_t), void* state) {
  if (count == 0) return;
  grain = std::max<std::size_t>(grain, 1);
  const std::size_t blocks = (count + grain - 1) / grain;
  const int team = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(g_threads), blocks));
  if (team <= 1 || omp_in_parallel()) {
    body(state, 0, count);
    return;
  }
#pragma omp parallel num_threads(team)
  {
    const std::size_t part = static_cast<std::size_t>(omp_get_thread_num());
    const std::size_t parts = static_cast<std::size_t>(omp_get_num_threads());
    const std::size_t begin = blocks * part / parts * grain;
    const std::size_t end = std::min(count, blocks * (part + 1) / parts * grain);
    if (begin < end) body(state, begin, end);
  }
}

}  // namespace detail
}  // namespace ctk
