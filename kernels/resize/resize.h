// resize: images to another size, by tables of what an output position reads. Modes, coordinates and sizes are in the
// tables (graph/ops/resize); one kernel serves them all.
//
// nearest: the pixel at the first tap of both axes, moved as it is.
// blend:   in double, the value of an output element is
//            sum over y's taps of weight * (sum over x's taps of weight * x[tap])
//          both sums starting at 0, taps in order, each product and sum rounded; a tap of weight 0 is not read (an
//          infinite neighbour without a say makes no NaN). Floats: rounded to float32. Codes: what is read is
//          core/quant_tensor.h's float of the code; the float32 of the sum is rounded to a code by the rule there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cpu_isa.h"

namespace ctk::kernels {

struct ResizeAxis {
  std::int64_t in = 1, out = 1;      // positions
  std::int64_t taps = 1;             // that an output position reads
  const std::int64_t* at = nullptr;  // [out, taps], each in [0, in)
  const double* weight = nullptr;    // [out, taps]; of blend
};

struct Resize {
  std::int64_t batch = 1, channels = 1;  // x [batch, y.in, x.in, channels] -> y [batch, y.out, x.out, channels]
  ResizeAxis y, x;
};

struct ResizeCodes {
  float in_scale = 1.0f, out_scale = 1.0f;
  std::uint8_t in_zero = 0, zero_point = 0;
};

struct ResizeRow {
  Isa isa;
  const char* name;
  // Rows [row_begin, row_end) of batch * y.out; y does not overlap x.
  void (*nearest)(const Resize& resize, std::size_t element_bytes, const void* x, void* y, std::int64_t row_begin,
                  std::int64_t row_end);
  void (*blend_f32)(const Resize& resize, const float* x, float* y, std::int64_t row_begin, std::int64_t row_end);
  void (*blend_u8)(const Resize& resize, const ResizeCodes& codes, const std::uint8_t* x, std::uint8_t* y,
                   std::int64_t row_begin, std::int64_t row_end);
};

#define CTK_KERNEL(symbol) extern const ResizeRow symbol;
#include "kernels/resize/kernels.def"
#undef CTK_KERNEL

std::span<const ResizeRow> resize_rows();

}  // namespace ctk::kernels
