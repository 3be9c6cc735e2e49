#include "kernels/gemm_w8a8/gemm_w8a8.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "kernels/requantize.h"

namespace ctk::kernels {
namespace {

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// A block of staged rows stays in the second-level cache while the panels of weights pass by; a tile of them and a
// panel share the first. All weights pass by once a block, from memory where they are large: long rows get more of the
// cache, so that there are not too few of them for that.
constexpr std::size_t kBlockBytes = 64 << 10, kMostBlockBytes = 272 << 10;
constexpr std::size_t kLeastRows = 64, kMostRows = 192;

// Rows a multiple of 512 bytes apart fall on the same few cache sets: read side by side, they evict each other.
bool collides(std::size_t pitch) {
  return pitch != 0 && pitch % 512 == 0;
}

// uint8 rows whose length needs no padding are read where they lie.
bool reads_in_place(const GemmIntRow& row, const GemmInt& g) {
  return row.element_bytes == 1 && g.k % row.k_step == 0 && !collides(g.a_stride);
}

std::size_t staged_pitch(const GemmIntRow& row, std::size_t k) {
  const std::size_t pitch = round_up(round_up(k, row.k_step) * row.element_bytes, 4);
  return collides(pitch) ? pitch + 64 : pitch;
}

std::size_t block_rows(const GemmIntRow& row, std::size_t k) {
  const std::size_t pitch = std::max<std::size_t>(staged_pitch(row, k), 1);
  const std::size_t fitting = std::max(kBlockBytes / pitch, std::min(kLeastRows, kMostBlockBytes / pitch));
  return std::clamp(fitting / row.m_step, std::size_t{1}, std::max(kMostRows / row.m_step, std::size_t{1})) *
         row.m_step;
}

void run_rows(const GemmIntRow& row, const GemmInt& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin,
              std::size_t n_end, char* scratch) {
  const std::size_t block = block_rows(row, g.k), pitch = staged_pitch(row, g.k);
  const bool in_place = reads_in_place(row, g);
  // Rows that follow each other here and there are staged in one go: calls would cost more than short rows.
  const bool is_seamless = !in_place && g.a_stride == g.k && pitch == g.k * row.element_bytes;
  const void** pointers = reinterpret_cast<const void**>(scratch);
  char* staged = scratch + round_up(block * sizeof(void*), 64);
  const std::size_t no_offset = 0;
  GemmStaged s;
  s.n = g.n;
  s.segment_k = round_up(g.k, row.k_step);
  s.rows = pointers;
  s.offsets = &no_offset;
  s.packed = g.packed;
  s.c_stride = g.c_stride;
  for (std::size_t begin = m_begin; begin < m_end; begin += block) {
    s.m = std::min(block, m_end - begin);
    if (is_seamless) row.stage(g.a + begin * g.a_stride, s.m * g.k, staged);
    for (std::size_t i = 0; i < s.m; ++i) {
      const std::uint8_t* a = g.a + (begin + i) * g.a_stride;
      char* copy = staged + i * pitch;
      pointers[i] = in_place ? static_cast<const void*>(a) : copy;
      if (in_place || is_seamless) continue;
      row.stage(a, g.k, copy);
      std::memset(copy + g.k * row.element_bytes, 0, pitch - g.k * row.element_bytes);
    }
    s.epilogue = epilogue_from(g.epilogue, begin, 0);
    s.c = output_from(g.epilogue, g.c, begin * g.c_stride);
    row.run_staged(s, n_begin, n_end);
  }
}

}  // namespace

#define CTK_KERNEL(symbol) extern const GemmIntRow symbol;
#include "kernels/gemm_w8a8/kernels.def"
#undef CTK_KERNEL

std::span<const GemmIntRow> gemm_w8a8_rows() {
  static const GemmIntRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/gemm_w8a8/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

std::size_t gemm_int_scratch_bytes(const GemmIntRow& row, std::size_t k) {
  const std::size_t block = block_rows(row, k);
  return round_up(block * sizeof(void*), 64) + round_up(block * staged_pitch(row, k), 64);
}

void gemm_int(const GemmIntRow& row, const GemmInt& g, void* scratch) {
  const std::size_t per_thread = gemm_int_scratch_bytes(row, g.k), team = static_cast<std::size_t>(threads());
  char* base = static_cast<char*>(scratch);
  // Few rows leave threads idle or their tiles half empty; columns are then the better cut.
  const bool by_columns = g.m < 4 * row.m_step * team && g.n >= 2 * row.n_step;
  if (by_columns) {
    parallel_for(g.n, row.n_step, [&](std::size_t begin, std::size_t end) {
      run_rows(row, g, 0, g.m, begin, end, base + static_cast<std::size_t>(thread_index()) * per_thread);
    });
  } else {
    parallel_for(g.m, row.m_step, [&](std::size_t begin, std::size_t end) {
      run_rows(row, g, begin, end, 0, g.n, base + static_cast<std::size_t>(thread_index()) * per_thread);
    });
  }
}

}  // namespace ctk::kernels
