// gemm_wg: C[m,n] = epilogue(sum_k A[m,k] * W[n,k]), W in codes of b = 2, 3, 4, 5, 6 or 8 bits with one fp16 scale
// (and, if affine, one zero point) for `group_size` neighbours in k, A float32 and rounded to integers on the way in:
// to 8 bits for schemes of 8-bit activations, to 16 or 24 where activations are floats.
//
// Weights. W[n,k] = scales[n,g] * (u[n,k] - z[n,g]), g = k / group_size, u in 0..2^b-1. Symmetric: z = 2^(b-1), so that
// u - z is the code in two's complement. The last group may be shorter. Scales are finite fp16 of either sign.
//
// Activations, per row and group, or with `per_token` per row (the same scale in all its groups). `digits` D: 1, 2, 3.
//   top   = largest |a|. Not finite: scale = NaN and q = 0, so the row of C is NaN. Below 2^-100: scale = 0 and q = 0.
//   scale = top / Q, inverse = Q / top, Q = 127 * 256^(D-1)                                (float32 divisions)
//   q     = nearbyint(a * inverse)                                                         (ties to even)
// q is written in D signed bytes, q = sum_d 256^d * q_d, each -128..127. |a - q * scale| is at most 2^-8 (D = 1), 2^-15
// (D = 2) or 2^-23 (D = 3) times top; three digits carry what a float32 carries beside the largest of its group.
//
// Sums. For each group the dot product of a digit with the codes is an exact int32, and there are D rounding steps:
//   acc = bias[n] or 0
//   for g ascending, for d = D-1 .. 0:
//     dot = sum_{k in g} q_d[m,k] * (u[n,k] - z[n,g])
//     acc = fma(float32(dot), float32(scales[n,g]) * (scale[m,g] * 256^d), acc)
//   y   = clamp(acc + residual, low, high)                                     (kernels/epilogue.h, float kernels)
// Where an int32 holds the sum over q itself (`sums_whole`: D = 2 and group * 2^b at most 2^16, for
// 32512 * 2^16 < 2^31), it is one step: dot = sum_{k in g} q[m,k] * (u[n,k] - z[n,g]), by scale[m,g].
// The order is fixed, so every row, tile and thread count gives the same bits.
//
// Bounds: group_size is a multiple of 16, or 0 for one group of all k (per channel); k <= 2^20, and a group has at most
// 2^(24-b), so that dots fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cpu_isa.h"
#include "kernels/epilogue.h"

namespace ctk::kernels {

struct WgShape {
  std::size_t n = 0, k = 0;
  std::size_t group_size = 0;
  bool is_affine = false;
  int bits = 4;

  std::size_t group() const { return group_size == 0 || group_size > k ? k : group_size; }
  std::size_t groups() const { return k == 0 ? 0 : (k + group() - 1) / group(); }
  // Within the bounds above; the functions below ask for it.
  bool is_supported() const {
    const bool is_width = bits >= 2 && bits <= 8 && bits != 7;
    return is_width && k <= kMostK && group() <= std::size_t{1} << (24 - bits) &&
           (group() == k || group_size % 16 == 0);
  }

  // Whether activations of so many digits are summed whole.
  bool sums_whole(int digits) const { return digits == 2 && group() << bits <= std::size_t{1} << 16; }

  static constexpr std::size_t kMostK = std::size_t{1} << 20;
};

// Codes and zero points in two's complement, a byte each: u - 2^(b-1) and z - 2^(b-1), all of the width.
struct WgMatrix {
  WgShape shape;
  const std::int8_t* codes = nullptr;        // [n, k], rows row_codes apart
  std::size_t row_codes = 0;                 // >= k
  const void* held = nullptr;                // in place of codes: [n, k] of code_dtype(bits), as tensors hold them
  const std::uint16_t* scales = nullptr;     // fp16 [n, groups]
  const std::int8_t* zero_points = nullptr;  // [n, groups]; affine only
};

struct GemmWg {
  std::size_t m = 0;
  WgShape shape;
  const float* a = nullptr;  // [m, k], rows a_stride apart
  std::size_t a_stride = 0;
  int digits = 1;
  bool per_token = false;
  const void* packed = nullptr;  // by the same row's pack(), 64-byte aligned
  EpilogueFloat epilogue;        // for row 0, column 0
  float* c = nullptr;            // [m, n], rows c_stride apart; must not overlap a
  std::size_t c_stride = 0;
};

// One instruction set's implementation. Scratch and staged memory are 64-byte aligned, sizes multiples of 64.
struct GemmWgRow {
  Isa isa;
  const char* name;
  std::size_t n_step;  // columns may be split at multiples of it
  std::size_t (*packed_bytes)(const WgShape& shape);
  // Packs columns [n_begin, n_end) into the buffer for all; n_begin is a multiple of n_step.
  void (*pack)(const WgMatrix& w, std::size_t n_begin, std::size_t n_end, void* packed);
  // W[n, 0..k) as floats, for one row of what pack() wrote.
  void (*unpack_row)(const WgShape& shape, const void* packed, std::size_t n, float* out);
  // Most rows of A one stage() may take, for a block that stays in the second cache. Never 0.
  std::size_t (*block_rows)(const WgShape& shape, int digits);
  // Staged activations of a block of `rows`: bytes, and writing the part of rows [begin, end) of the block, whose first
  // row is at `a`. Different parts may be written by different threads.
  std::size_t (*staged_bytes)(const WgShape& shape, int digits, std::size_t rows);
  void (*stage)(const GemmWg& g, const float* a, std::size_t rows, std::size_t begin, std::size_t end, void* staged);
  std::size_t (*scratch_bytes)(const WgShape& shape, int digits);  // per thread, for run()
  // Rows [m_begin, m_begin + rows), a block staged by this row, times columns [n_begin, n_end); n_begin: as for pack().
  void (*run)(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
              std::size_t n_end, void* scratch);
};

std::span<const GemmWgRow> gemm_wg_rows();

// Packs a whole matrix, split over threads. packed: row.packed_bytes.
void pack_wg(const GemmWgRow& row, const WgMatrix& w, void* packed);

// Scratch gemm_wg needs for products of up to `m` rows with the current number of threads.
std::size_t gemm_wg_scratch_bytes(const GemmWgRow& row, const WgShape& shape, int digits, std::size_t m);
// Splits one product over threads by columns, or by rows when there are many. Allocates nothing.
void gemm_wg(const GemmWgRow& row, const GemmWg& g, void* scratch);

}  // namespace ctk::kernels
