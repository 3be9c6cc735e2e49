// gemm_w8a8: C[m,n] = epilogue(sum_k A[m,k] * W[n,k]), A uint8, W int8, exact int32 sums (kernels/epilogue.h).
//
// How a row sees its activations: "staged", that is, in the element type it multiplies (uint8 or int16), each row of A
// given by a pointer and cut into equal segments. A matrix has one segment; a convolution has one per kernel row, all
// reading one padded copy of the image, so that nothing is gathered pixel by pixel. K of the packed weights is
// segments * segment_k, each segment padded with zero weights to a multiple of k_step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cpu_isa.h"
#include "kernels/epilogue.h"

namespace ctk::kernels {

struct GemmInt {
  std::size_t m = 0, n = 0, k = 0;
  const std::uint8_t* a = nullptr;  // [m, k], rows a_stride apart, any alignment
  std::size_t a_stride = 0;
  const void* packed = nullptr;  // made by the same row's pack(), 64-byte aligned
  EpilogueInt epilogue;          // its bias, multiplier and residual start at this block's first column
  void* c = nullptr;             // uint8 or float32 [m, n], rows c_stride elements apart
  std::size_t c_stride = 0;
};

// A product whose activations are staged already.
struct GemmStaged {
  std::size_t m = 0, n = 0;
  std::size_t segments = 1, segment_k = 0;  // segment_k: a multiple of k_step
  const void* const* rows = nullptr;        // [m], staged activations
  const std::size_t* offsets = nullptr;     // [segments], bytes from a row's pointer to the segment; element-aligned
  const void* packed = nullptr;             // for K = segments * segment_k
  EpilogueInt epilogue;                     // for row 0, column 0
  void* c = nullptr;
  std::size_t c_stride = 0;
};

struct WinogradRow;  // kernels/winograd_w8a8/winograd_w8a8.h

// One instruction set's implementation; the same type serves gemm_w8a8 and gemm_w4a8 (weights within -8..7).
struct GemmIntRow {
  Isa isa;
  const char* name;
  std::size_t m_step;  // row-block and column-block sizes at which work may be split without loss
  std::size_t n_step;
  std::size_t k_step;         // see above
  std::size_t element_bytes;  // of a staged activation: 1 (uint8) or 2 (int16)
  std::size_t (*packed_bytes)(std::size_t n, std::size_t k);
  // w: canonical int8 [n, k] row-major. Columns lie in blocks of n_step: those from i * n_step on are packed as by a
  // call of their own, from packed_bytes(i * n_step, k) on.
  void (*pack)(const std::int8_t* w, std::size_t n, std::size_t k, void* packed);
  // Writes `count` activations in the staged type. Touches exactly count elements on both sides.
  void (*stage)(const std::uint8_t* x, std::size_t count, void* staged);
  // Computes columns [n_begin, n_end) of all m rows, single-threaded; n_begin is a multiple of n_step.
  // bias/multiplier/c/residual are for column 0.
  void (*run_staged)(const GemmStaged& g, std::size_t n_begin, std::size_t n_end);
  // What conv_int may use instead for 3x3 convolutions of stride 1 with at least winograd_channels input channels, with
  // the same bits; null: nothing.
  const WinogradRow* winograd = nullptr;
  std::size_t winograd_channels = 0;
  const WinogradRow* winograd_large = nullptr;  // the same with larger tiles, for weights that fit it; null: nothing
  // The smaller tiles are slower than no tiles: only shapes that suit the larger ones are worth it.
  bool winograd_needs_large = false;
};

std::span<const GemmIntRow> gemm_w8a8_rows();

// Scratch gemm_int needs for one thread, a multiple of 64.
std::size_t gemm_int_scratch_bytes(const GemmIntRow& row, std::size_t k);
// Splits one product over threads by rows, or by columns when there are few rows.
// scratch: threads() * gemm_int_scratch_bytes, 64-byte aligned. Allocates nothing.
void gemm_int(const GemmIntRow& row, const GemmInt& g, void* scratch);

}  // namespace ctk::kernels
