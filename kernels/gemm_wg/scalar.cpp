// The reference: codes unpacked to bytes, activations as their digits, sums as the header states them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "kernels/gemm_wg/gemm_wg.h"

namespace ctk::kernels {
namespace {

// Packed: codes [n, k], scales [n, groups], zero points [n, groups].
struct Packed {
  std::uint8_t* codes;
  float* scales;
  std::uint8_t* zero_points;
};

std::size_t round_up(std::size_t value) {
  return (value + 63) / 64 * 64;
}

std::size_t packed_bytes(const WgShape& s) {
  return round_up(s.n * s.k) + round_up(s.n * s.groups() * sizeof(float)) + round_up(s.n * s.groups());
}

Packed parts_of(const WgShape& s, const void* packed) {
  char* at = static_cast<char*>(const_cast<void*>(packed));
  char* scales = at + round_up(s.n * s.k);
  char* zero_points = scales + round_up(s.n * s.groups() * sizeof(float));
  return {reinterpret_cast<std::uint8_t*>(at), reinterpret_cast<float*>(scales),
          reinterpret_cast<std::uint8_t*>(zero_points)};
}

void pack(const WgMatrix& w, std::size_t n_begin, std::size_t n_end, void* packed) {
  const Packed p = parts_of(w.shape, packed);
  const std::size_t k = w.shape.k, groups = w.shape.groups();
  const int half = 1 << (w.shape.bits - 1);
  const DType held = code_dtype(w.shape.bits);
  const auto code_at = [&](std::size_t n, std::size_t i) -> int {
    if (w.held == nullptr) return w.codes[n * w.row_codes + i];
    return packed_element(w.held, held, n * k + i);
  };
  for (std::size_t n = n_begin; n < n_end; ++n) {
    for (std::size_t i = 0; i < k; ++i) p.codes[n * k + i] = static_cast<std::uint8_t>(code_at(n, i) + half);
    for (std::size_t g = n * groups; g < (n + 1) * groups; ++g) {
      p.scales[g] = half_to_float(w.scales[g]);
      p.zero_points[g] = static_cast<std::uint8_t>(half + (w.shape.is_affine ? w.zero_points[g] : 0));
    }
  }
}

void unpack_row(const WgShape& s, const void* packed, std::size_t n, float* out) {
  const Packed p = parts_of(s, packed);
  for (std::size_t k = 0; k < s.k; ++k) {
    const std::size_t group = n * s.groups() + k / s.group();
    out[k] = p.scales[group] * static_cast<float>(p.codes[n * s.k + k] - p.zero_points[group]);
  }
}

std::size_t block_rows(const WgShape&, int) {
  return 16;
}

// Staged: scales [rows, groups], then digits [rows, digits, k], the highest first.
std::size_t staged_bytes(const WgShape& s, int digits, std::size_t rows) {
  return round_up(rows * s.groups() * sizeof(float)) + round_up(rows * static_cast<std::size_t>(digits) * s.k);
}

float largest(const float* a, std::size_t count) {
  float top = 0.0f;
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(a[i])) return std::numeric_limits<float>::quiet_NaN();
    top = std::fabs(a[i]) > top ? std::fabs(a[i]) : top;
  }
  return top;
}

void stage(const GemmWg& g, const float* a, std::size_t rows, std::size_t begin, std::size_t end, void* staged) {
  const std::size_t k = g.shape.k, groups = g.shape.groups(), digits = static_cast<std::size_t>(g.digits);
  float* scales = static_cast<float*>(staged);
  std::int8_t* all = static_cast<std::int8_t*>(staged) + round_up(rows * groups * sizeof(float));
  const float limit = g.digits == 1 ? 127.0f : g.digits == 2 ? 127.0f * 256.0f : 127.0f * 65536.0f;
  for (std::size_t m = begin; m < end; ++m) {
    const float* row = a + m * g.a_stride;
    for (std::size_t group = 0; group < groups; ++group) {
      const std::size_t first = group * g.shape.group();
      const std::size_t count = std::min(g.shape.group(), k - first);
      const float top = g.per_token ? largest(row, k) : largest(row + first, count);
      const bool is_zero = !(top >= 0x1p-100f);  // or not finite
      scales[m * groups + group] = std::isnan(top) ? top : is_zero ? 0.0f : top / limit;
      const float inverse = is_zero ? 0.0f : limit / top;
      for (std::size_t i = first; i < first + count; ++i) {
        std::int32_t q = is_zero ? 0 : static_cast<std::int32_t>(std::nearbyint(row[i] * inverse));
        for (std::size_t d = digits; d-- > 0;) {
          const std::int8_t digit = static_cast<std::int8_t>(q & 255);
          all[(m * digits + d) * k + i] = digit;
          q = (q - digit) / 256;
        }
      }
    }
  }
}

std::size_t scratch_bytes(const WgShape&, int) {
  return 0;
}

void run(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
         std::size_t n_end, void*) {
  const Packed p = parts_of(g.shape, g.packed);
  const std::size_t k = g.shape.k, groups = g.shape.groups(), digits = static_cast<std::size_t>(g.digits);
  const float* scales = static_cast<const float*>(staged);
  const std::int8_t* all = static_cast<const std::int8_t*>(staged) + round_up(rows * groups * sizeof(float));
  const bool is_whole = g.shape.sums_whole(g.digits);
  const float top_digit = g.digits == 1 ? 1.0f : g.digits == 2 ? 256.0f : 65536.0f;
  for (std::size_t m = 0; m < rows; ++m) {
    for (std::size_t n = n_begin; n < n_end; ++n) {
      float acc = g.epilogue.bias != nullptr ? g.epilogue.bias[n] : 0.0f;
      for (std::size_t group = 0; group < groups; ++group) {
        const std::size_t first = group * g.shape.group(), last = std::min(first + g.shape.group(), k);
        const int zero_point = p.zero_points[n * groups + group];
        float weight = top_digit;
        std::int32_t dot = 0;
        for (std::size_t d = 0; d < digits; ++d, weight /= 256.0f) {
          dot = is_whole ? 256 * dot : 0;
          const std::int8_t* q = all + (m * digits + d) * k;
          for (std::size_t i = first; i < last; ++i) dot += q[i] * (p.codes[n * k + i] - zero_point);
          if (is_whole && d + 1 < digits) continue;
          const float scale = p.scales[n * groups + group] * (scales[m * groups + group] * weight);
          acc = std::fma(static_cast<float>(dot), scale, acc);
        }
      }
      const std::size_t row = m_begin + m;
      const EpilogueFloat& e = g.epilogue;
      if (e.residual != nullptr) acc += e.residual[row * e.residual_stride + n];
      acc = e.low > acc ? e.low : acc;  // in this order a NaN stays a NaN
      g.c[row * g.c_stride + n] = e.high < acc ? e.high : acc;
    }
  }
}

}  // namespace

extern const GemmWgRow gemm_wg_1x1_scalar;
constinit const GemmWgRow gemm_wg_1x1_scalar{
    .isa = Isa::scalar,
    .name = "gemm_wg_1x1_scalar",
    .n_step = 1,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .unpack_row = unpack_row,
    .block_rows = block_rows,
    .staged_bytes = staged_bytes,
    .stage = stage,
    .scratch_bytes = scratch_bytes,
    .run = run,
};

}  // namespace ctk::kernels
