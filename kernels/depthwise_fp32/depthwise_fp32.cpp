// depthwise_fp32: scalar reference, table of rows, and the split over threads by output rows.
#include "kernels/depthwise_fp32/depthwise_fp32.h"

#include <cmath>
#include <cstring>

#include "core/parallel.h"
#include "kernels/window.h"

namespace ctk::kernels {
namespace {

std::size_t packed_bytes(const ConvShape& s) {
  return static_cast<std::size_t>(s.in_channels * s.kernel_height * s.kernel_width) * sizeof(float);
}

void pack(const ConvShape& s, const float* weights, void* packed) {
  if (packed_bytes(s) != 0) std::memcpy(packed, weights, packed_bytes(s));
}

std::size_t scratch_bytes(const ConvShape&) {
  return 0;
}

void run(const ConvShape& s, const void* packed, const float* x, const EpilogueFloat& e, float* y,
         std::int64_t row_begin, std::int64_t row_end, void*) {
  const float* weights = static_cast<const float*>(packed);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const std::int64_t image = row / s.out_height, oy = row % s.out_height;
    for (std::int64_t ox = 0; ox < s.out_width; ++ox) {
      const std::int64_t pixel = row * s.out_width + ox;
      for (std::int64_t c = 0; c < s.in_channels; ++c) {
        float acc = e.bias != nullptr ? e.bias[c] : 0.0f;
        const float* w = weights + c * s.kernel_height * s.kernel_width;
        for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
          const std::int64_t iy = window_row(s, oy, ky);
          for (std::int64_t kx = 0; kx < s.kernel_width; ++kx) {
            const std::int64_t ix = window_column(s, ox, kx);
            const bool is_inside = iy >= 0 && ix >= 0;
            const float value =
                is_inside ? x[((image * s.in_height + iy) * s.in_width + ix) * s.in_channels + c] : 0.0f;
            acc = std::fma(value, *w++, acc);
          }
        }
        if (e.residual != nullptr) acc += e.residual[static_cast<std::size_t>(pixel) * e.residual_stride + c];
        acc = e.low > acc ? e.low : acc;  // in this order a NaN stays a NaN
        y[pixel * s.in_channels + c] = e.high < acc ? e.high : acc;
      }
    }
  }
}

}  // namespace

const DepthwiseFloatRow depthwise_fp32_1_scalar = {
    Isa::scalar, "depthwise_fp32_1_scalar", packed_bytes, pack, scratch_bytes, run};

std::span<const DepthwiseFloatRow> depthwise_fp32_rows() {
  static const DepthwiseFloatRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/depthwise_fp32/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

void depthwise_float(const DepthwiseFloatRow& row, const ConvShape& s, const void* packed, const float* x,
                     const EpilogueFloat& epilogue, float* y, void* scratch) {
  const std::size_t bytes = row.scratch_bytes(s);
  parallel_for(static_cast<std::size_t>(s.batch * s.out_height), 1, [&](std::size_t begin, std::size_t end) {
    row.run(s, packed, x, epilogue, y, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end),
            static_cast<char*>(scratch) + static_cast<std::size_t>(thread_index()) * bytes);
  });
}

}  // namespace ctk::kernels
