// The 256-bit rows: what they are made of, beside the `Dot` of dots_x86_avx2.h. Sources with AVX2 only; internal
// linkage.
#pragma once

#include "kernels/gemm_wg/thick_x86_avx2.h"
#include "kernels/gemm_wg/thin_x86_avx2.h"
#include "kernels/gemm_wg/wide_x86_avx2.h"

namespace ctk::kernels {
namespace {

// Whether a block of so many lines is few. Small groups make scaling dear, which the other way prepares once.
inline bool is_thin(const PanelLayout& p, std::size_t lines) {
  return lines <= kThinLines || (lines <= 2 * kThinLines && p.group_steps >= 4);
}

// Most lines of one tile of a block.
inline std::size_t tile_lines(const PanelLayout& p, std::size_t block_lines) {
  return is_thin(p, block_lines) ? kThinLines : kLines;
}

// Whether many lines go by 16-bit products.
inline bool is_wide(const WgShape& s, int digits) {
  return Dot::kTakesWords && s.sums_whole(digits);
}

inline std::size_t block_rows(const WgShape& s, int digits) {
  const std::size_t bytes = layout_of(s).steps * kStep * static_cast<std::size_t>(digits);
  const std::size_t fitting = bytes == 0 ? kMostRows : kBlockBytes / bytes;
  return fitting < kLeastRows ? kLeastRows : smaller(fitting, kMostRows);
}

inline std::size_t staged_bytes(const WgShape& s, int digits, std::size_t rows) {
  return staged_bytes_of(layout_of(s), rows * static_cast<std::size_t>(digits));
}

inline void stage(const GemmWg& g, const float* a, std::size_t rows, std::size_t begin, std::size_t end, void* staged) {
  const std::size_t lines = rows * static_cast<std::size_t>(g.digits);
  if (is_wide(g.shape, g.digits) && !is_thin(layout_of(g.shape), lines)) {
    stage_rows<2, true>(g, a, rows, begin, end, kWideLines, staged);
  } else {
    stage_tiles(g, a, rows, begin, end, tile_lines(layout_of(g.shape), lines), staged);
  }
}

inline std::size_t scratch_bytes(const WgShape& s, int digits) {
  const Form form = is_wide(s, digits) ? Form::words : bytes_form(s.bits);
  return chunk_bytes(layout_of(s), copies_of(form), block_rows(s, digits));
}

template <int kBits, std::size_t D>
void run_digits(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
                std::size_t n_end, void* scratch) {
  if (is_thin(layout_of(g.shape), rows * D)) {
    thin<kBits, D>(g, staged, m_begin, rows, n_begin, n_end);
    return;
  }
  if constexpr (D == 2 && Dot::kTakesWords) {
    if (is_wide(g.shape, D)) return by_chunks<WideWay, kBits, D>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  }
  by_chunks<ThickWay<kBits, D>, kBits, D>(g, staged, m_begin, rows, n_begin, n_end, scratch);
}

}  // namespace
}  // namespace ctk::kernels

#include "kernels/gemm_wg/widths.h"
