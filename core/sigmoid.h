// 1 / (1 + exp(-x)) without branches, so that loops over it become vector code; the same bits wherever it is used.
// By exp(-|x|) (core/exp_negative.h). NaN stays NaN.
#pragma once

#include "core/exp_negative.h"

namespace ctk {

inline float sigmoid(float x) {
  const std::uint32_t is_negative = 0u - (std::bit_cast<std::uint32_t>(x) >> 31);
  const float e = exp_negative(x);
  const std::uint32_t top =
      (std::bit_cast<std::uint32_t>(e) & is_negative) | (std::bit_cast<std::uint32_t>(1.0f) & ~is_negative);
  return std::bit_cast<float>(top) / (1.0f + e);
}

}  // namespace ctk
