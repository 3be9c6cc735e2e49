// The last step of every product kernel: exact sums -> stored values. The one place that states the rounding rule.
//
// Integer kernels. acc = bias[n] + sum_k a[m,k] * w[n,k] in exact int32 (wrap-around arithmetic; callers keep it in
// range). `bias` already holds the zero-point term: bias[n] = bias_code[n] - input_zero_point * sum_k w[n,k].
//   to uint8:   t = float32(acc) * multiplier[n]            (both roundings IEEE nearest-even; no fused multiply-add)
//               q = zero_point + int(nearbyint(clamp(t, low - zero_point, high - zero_point)))      (ties to even)
//   to float32: y = clamp(float32(acc) * multiplier[n], low_f, high_f)
//   residual (uint8 form only): the sum of two stored values, exactly as if both steps had been run apart:
//               q1 = first step with zero_point = mid_zero_point, low 0, high 255
//               t  = float32(q1 - mid_zero_point) * mid_ratio + float32(r - residual_zero_point) * residual_ratio
//               q  = zero_point + int(nearbyint(clamp(t, low - zero_point, high - zero_point)))
// Relu and Clip are folded into low/high: monotone rounding makes clamping codes the same as rounding clamped reals.
// Every row gives these bits.
//
// Float kernels. acc = bias[n], then one fused multiply-add per k in ascending k; y = clamp(acc + residual, low, high).
// The order is fixed, so bits do not depend on tile, row or thread count.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ctk::kernels {

struct ResidualU8 {
  const std::uint8_t* data = nullptr;  // [m, n] with row stride `stride`; may be the output itself
  std::size_t stride = 0;              // elements from one row to the next
  std::uint8_t mid_zero_point = 0;
  float mid_ratio = 0.0f;  // mid scale / output scale
  std::uint8_t residual_zero_point = 0;
  float residual_ratio = 0.0f;  // residual scale / output scale
};

struct EpilogueInt {
  const std::int32_t* bias = nullptr;  // [n], zero-point term included; never null
  const float* multiplier = nullptr;   // [n]: input scale * weight scale / (output or mid scale); without / for float
  bool to_float = false;
  std::uint8_t zero_point = 0;        // of the output
  std::uint8_t low = 0, high = 255;   // code clamp
  float low_f = 0.0f, high_f = 0.0f;  // float clamp (use -inf/+inf for none)
  ResidualU8 residual;                // data == nullptr: none
};

struct EpilogueFloat {
  const float* bias = nullptr;      // [n] or null (0)
  const float* residual = nullptr;  // [m, n] row stride residual_stride, or null; may be the output itself
  std::size_t residual_stride = 0;
  float low = 0.0f, high = 0.0f;  // use -inf/+inf for none
};

}  // namespace ctk::kernels
