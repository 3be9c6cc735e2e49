// convert: scalar reference and table of rows.
#include "kernels/convert/convert.h"

#include "core/quant_tensor.h"

namespace ctk::kernels {
namespace {

void quantize(const float* x, float scale, std::uint8_t zero_point, std::uint8_t* y, std::size_t count) {
  const ActivationQuant q{scale, zero_point};
  for (std::size_t i = 0; i < count; ++i) y[i] = ctk::quantize(x[i], q);
}

void dequantize(const std::uint8_t* x, float scale, std::uint8_t zero_point, float* y, std::size_t count) {
  const ActivationQuant q{scale, zero_point};
  for (std::size_t i = 0; i < count; ++i) y[i] = ctk::dequantize(x[i], q);
}

// [rows, columns] -> [columns, rows].
template <class T>
void transpose(const T* x, T* y, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) y[c * rows + r] = x[r * columns + c];
  }
}

template <class T>
void to_channels_last(const T* x, T* y, std::size_t channels, std::size_t pixels) {
  transpose(x, y, channels, pixels);
}

template <class T>
void to_channels_first(const T* x, T* y, std::size_t channels, std::size_t pixels) {
  transpose(x, y, pixels, channels);
}

}  // namespace

const ConvertRow convert_scalar = {Isa::scalar,
                                   "convert_scalar",
                                   quantize,
                                   dequantize,
                                   to_channels_last<float>,
                                   to_channels_first<float>,
                                   to_channels_last<std::uint8_t>,
                                   to_channels_first<std::uint8_t>};

std::span<const ConvertRow> convert_rows() {
  static const ConvertRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/convert/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

}  // namespace ctk::kernels
