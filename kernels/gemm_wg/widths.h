// The end of a vector row: run(), from widths and digits as numbers to template parameters, and the struct. The source
// that includes this has the other functions under the struct's names, and
//   template <int kBits, std::size_t D> void run_digits(..., as run())
// For ISA sources: everything has internal linkage.
#pragma once

#include "kernels/gemm_wg/gemm_wg.h"

namespace ctk::kernels {
namespace {

template <int kBits>
void run_bits(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
              std::size_t n_end, void* scratch) {
  if (g.digits == 1) run_digits<kBits, 1>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.digits == 2) run_digits<kBits, 2>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.digits == 3) run_digits<kBits, 3>(g, staged, m_begin, rows, n_begin, n_end, scratch);
}

inline void run(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
                std::size_t n_end, void* scratch) {
  if (g.shape.bits == 2) run_bits<2>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.shape.bits == 3) run_bits<3>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.shape.bits == 4) run_bits<4>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.shape.bits == 5) run_bits<5>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.shape.bits == 6) run_bits<6>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.shape.bits == 8) run_bits<8>(g, staged, m_begin, rows, n_begin, n_end, scratch);
}

constexpr GemmWgRow row_of(Isa isa, const char* name, std::size_t n_step) {
  return {isa, name, n_step, packed_bytes, pack, unpack_row, block_rows, staged_bytes, stage, scratch_bytes, run};
}

}  // namespace
}  // namespace ctk::kernels
