// resize: scalar reference and table of rows.
#include "kernels/resize/resize.h"

#include <cstring>

#include "core/quant_tensor.h"

namespace ctk::kernels {
namespace {

// Sum over the taps of position `to`, of at(tap's position).
template <class At>
double sum_of(const ResizeAxis& axis, std::int64_t to, const At& at) {
  double sum = 0.0;
  for (std::int64_t i = to * axis.taps; i < (to + 1) * axis.taps; ++i) {
    if (axis.weight[i] != 0.0) sum += axis.weight[i] * at(axis.at[i]);
  }
  return sum;
}

// Calls write(output element, its float32) for every element of the rows. real(x) is what an element stands for.
template <class T, class Real, class Write>
void blend(const Resize& r, const T* x, std::int64_t row_begin, std::int64_t row_end, const Real& real,
           const Write& write) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const T* image = x + row / r.y.out * r.y.in * r.x.in * r.channels;
    for (std::int64_t ox = 0; ox < r.x.out; ++ox) {
      for (std::int64_t c = 0; c < r.channels; ++c) {
        const double sum = sum_of(r.y, row % r.y.out, [&](std::int64_t iy) {
          return sum_of(r.x, ox, [&](std::int64_t ix) {
            return static_cast<double>(real(image[(iy * r.x.in + ix) * r.channels + c]));
          });
        });
        write((row * r.x.out + ox) * r.channels + c, static_cast<float>(sum));
      }
    }
  }
}

void nearest(const Resize& r, std::size_t element_bytes, const void* x, void* y, std::int64_t row_begin,
             std::int64_t row_end) {
  const std::size_t pixel = static_cast<std::size_t>(r.channels) * element_bytes;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const std::int64_t from_row = row / r.y.out * r.y.in + r.y.at[row % r.y.out * r.y.taps];
    for (std::int64_t ox = 0; ox < r.x.out; ++ox) {
      const std::int64_t from = from_row * r.x.in + r.x.at[ox * r.x.taps], to = row * r.x.out + ox;
      std::memcpy(static_cast<char*>(y) + static_cast<std::size_t>(to) * pixel,
                  static_cast<const char*>(x) + static_cast<std::size_t>(from) * pixel, pixel);
    }
  }
}

void blend_f32(const Resize& r, const float* x, float* y, std::int64_t row_begin, std::int64_t row_end) {
  blend(
      r, x, row_begin, row_end, [](float value) { return value; },
      [&](std::int64_t to, float value) { y[to] = value; });
}

void blend_u8(const Resize& r, const ResizeCodes& codes, const std::uint8_t* x, std::uint8_t* y, std::int64_t row_begin,
              std::int64_t row_end) {
  const ActivationQuant in{codes.in_scale, codes.in_zero}, out{codes.out_scale, codes.zero_point};
  blend(
      r, x, row_begin, row_end, [&](std::uint8_t code) { return dequantize(code, in); },
      [&](std::int64_t to, float value) { y[to] = quantize(value, out); });
}

}  // namespace

const ResizeRow resize_scalar = {Isa::scalar, "resize_scalar", nearest, blend_f32, blend_u8};

std::span<const ResizeRow> resize_rows() {
  static const ResizeRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/resize/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

}  // namespace ctk::kernels
