// gemm_wg: table of rows, and the split over threads.
#include "kernels/gemm_wg/gemm_wg.h"

#include <algorithm>

#include "core/parallel.h"

namespace ctk::kernels {

#define CTK_KERNEL(symbol) extern const GemmWgRow symbol;
#include "kernels/gemm_wg/kernels.def"
#undef CTK_KERNEL

namespace {

// Up to so many rows each thread rounds all activations itself: cheaper than waiting for one another.
constexpr std::size_t kRowsStagedTwice = 2;
// With so many rows a thread, rows are the cut: the threads then never wait for one another.
constexpr std::size_t kRowsPerThread = 24;

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

std::size_t team() {
  return static_cast<std::size_t>(threads());
}

std::size_t largest_block(const GemmWgRow& row, const WgShape& shape, int digits, std::size_t m) {
  return std::min(row.block_rows(shape, digits), std::max<std::size_t>(m, 1));
}

// A thread's part of the scratch: staged activations, then what run() needs.
std::size_t bytes_per_thread(const GemmWgRow& row, const WgShape& shape, int digits, std::size_t m) {
  return round_up(row.staged_bytes(shape, digits, largest_block(row, shape, digits, m)), 64) +
         round_up(row.scratch_bytes(shape, digits), 64);
}

}  // namespace

std::span<const GemmWgRow> gemm_wg_rows() {
  static const GemmWgRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/gemm_wg/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

void pack_wg(const GemmWgRow& row, const WgMatrix& w, void* packed) {
  parallel_for(w.shape.n, row.n_step, [&](std::size_t begin, std::size_t end) { row.pack(w, begin, end, packed); });
}

std::size_t gemm_wg_scratch_bytes(const GemmWgRow& row, const WgShape& shape, int digits, std::size_t m) {
  return team() * bytes_per_thread(row, shape, digits, m);
}

void gemm_wg(const GemmWgRow& row, const GemmWg& g, void* scratch) {
  if (g.m == 0) return;
  const std::size_t block = largest_block(row, g.shape, g.digits, g.m);
  const std::size_t per_thread = bytes_per_thread(row, g.shape, g.digits, g.m);
  const std::size_t staged_bytes = round_up(row.staged_bytes(g.shape, g.digits, block), 64);
  const auto part_of = [&](std::size_t thread) { return static_cast<char*>(scratch) + thread * per_thread; };
  const auto own_part = [&] { return part_of(static_cast<std::size_t>(thread_index())); };

  if (g.m >= kRowsPerThread * team()) {
    parallel_for(g.m, 1, [&](std::size_t begin, std::size_t end) {
      char* own = own_part();
      // Blocks as even as can be.
      const std::size_t blocks = (end - begin + block - 1) / block;
      for (std::size_t i = 0; i < blocks; ++i) {
        const std::size_t first = begin + (end - begin) * i / blocks;
        const std::size_t rows = begin + (end - begin) * (i + 1) / blocks - first;
        row.stage(g, g.a + first * g.a_stride, rows, 0, rows, own);
        row.run(g, own, first, rows, 0, g.shape.n, own + staged_bytes);
      }
    });
    return;
  }
  for (std::size_t first = 0; first < g.m; first += block) {
    const std::size_t rows = std::min(block, g.m - first);
    const float* a = g.a + first * g.a_stride;
    const bool shared = rows > kRowsStagedTwice;
    if (shared) {
      parallel_for(rows, 1, [&](std::size_t begin, std::size_t end) { row.stage(g, a, rows, begin, end, part_of(0)); });
    }
    parallel_for(g.shape.n, row.n_step, [&](std::size_t begin, std::size_t end) {
      char* own = own_part();
      if (!shared) row.stage(g, a, rows, 0, rows, own);
      row.run(g, shared ? part_of(0) : own, first, rows, begin, end, own + staged_bytes);
    });
  }
}

}  // namespace ctk::kernels
