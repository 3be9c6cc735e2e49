// The simplest codes of a scheme, for tests of writers: largest weight over lowest code, so that scales have both
// signs.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/quant_tensor.h"

namespace ctk::test {

// weight: f32 [rows, columns], a scale a row or group of columns. rounds_scales: to fp16 numbers.
inline QuantTensor round_weights(const Tensor& weight, const QuantScheme& scheme, bool rounds_scales = true) {
  QuantTensor out;
  out.scheme = scheme;
  const auto rows = static_cast<std::size_t>(weight.shape()[0]), width = static_cast<std::size_t>(weight.shape()[1]);
  const std::size_t group =
      scheme.granularity == Granularity::per_group ? static_cast<std::size_t>(scheme.group_size) : width;
  const bool is_wide = scheme.weight_bits == 8;
  const int low = is_wide ? -127 : -(1 << (scheme.weight_bits - 1)), high = is_wide ? 127 : -low - 1;
  std::vector<std::int8_t> codes(weight.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t g = 0; g < width; g += group) {
      const auto w = weight.values<float>().subspan(r * width + g, std::min(group, width - g));
      const float largest = *std::ranges::max_element(w, {}, [](float v) { return std::abs(v); });
      float scale = largest / static_cast<float>(low);
      if (rounds_scales) scale = half_to_float(float_to_half(scale));
      if (scale == 0.0f) scale = half_to_float(1);
      out.scales.push_back(scale);
      for (std::size_t i = 0; i < w.size(); ++i) {
        const float code = std::clamp(std::nearbyint(w[i] / scale), static_cast<float>(low), static_cast<float>(high));
        codes[r * width + g + i] = static_cast<std::int8_t>(code);
      }
    }
  }
  out.codes = pack_codes(weight.shape(), codes, scheme.weight_bits);
  return out;
}

}  // namespace ctk::test
