#include "compress/quantize/grid.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "core/parallel.h"

namespace ctk::quantization {
namespace {

// Adding 1.5 * 2^23 leaves no room for a fraction: the sum is rounded to nearest, ties to even, and its low bits are
// the code. Holds for the clamped values here, which are far below 2^22.
constexpr float kRounder = 12582912.0f;

void round_group(const float* weights, std::size_t count, const Grid& grid, const GridForm& form, std::int8_t* codes) {
  const float inverse = 1.0f / grid.scale;
  const float low = static_cast<float>(form.lowest_code() - grid.zero);
  const float high = static_cast<float>(form.highest_code() - grid.zero);
  const auto shift = std::bit_cast<std::int32_t>(kRounder) - grid.zero;
  for (std::size_t i = 0; i < count; ++i) {
    float level = weights[i] * inverse;
    level = level > low ? level : low;
    level = level < high ? level : high;
    codes[i] = static_cast<std::int8_t>(std::bit_cast<std::int32_t>(level + kRounder) - shift);
  }
}

}  // namespace

float nearest_scale(float scale, const GridForm& form) {
  const float least = form.has_half_scales ? 5.9604644775390625e-8f : std::numeric_limits<float>::min();  // 2^-24
  const float most = form.has_half_scales ? 65504.0f : std::numeric_limits<float>::max();
  float size = std::clamp(std::abs(scale), least, most);
  if (form.has_half_scales) size = half_to_float(float_to_half(size));
  return std::copysign(size, scale);
}

std::vector<std::int8_t> round_to_grids(std::span<const float> weights, std::size_t rows, std::size_t columns,
                                        const GridForm& form, const Grids& grids) {
  std::vector<std::int8_t> codes(rows * columns);
  const std::size_t length = form.group_length(columns), groups = form.groups(columns);
  parallel_for(rows, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      for (std::size_t g = 0; g < groups; ++g) {
        const std::size_t at = r * columns + g * length;
        round_group(weights.data() + at, std::min(length, columns - g * length), grids.at(r * groups + g), form,
                    codes.data() + at);
      }
    }
  });
  return codes;
}

std::vector<float> dequantize(std::span<const std::int8_t> codes, std::size_t rows, std::size_t columns,
                              const GridForm& form, const Grids& grids) {
  std::vector<float> weights(rows * columns);
  const std::size_t length = form.group_length(columns), groups = form.groups(columns);
  parallel_for(rows, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin * columns; i < end * columns; ++i) {
      const Grid grid = grids.at(i / columns * groups + i % columns / length);
      weights[i] = static_cast<float>(form.code_value(codes[i]) - grid.zero) * grid.scale;
    }
  });
  return weights;
}

}  // namespace ctk::quantization
