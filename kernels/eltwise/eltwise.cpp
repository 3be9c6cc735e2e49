// eltwise: scalar reference and table of rows.
#include "kernels/eltwise/eltwise.h"

#include <cmath>

namespace ctk::kernels {
namespace {

// Clamp, round to nearest even, shift. NaN (from a ratio that is none) becomes the low limit.
std::uint8_t to_code(float t, std::uint8_t zero_point, std::uint8_t low, std::uint8_t high) {
  const float least = static_cast<float>(low - zero_point), most = static_cast<float>(high - zero_point);
  t = t > least ? t : least;
  t = t < most ? t : most;
  return static_cast<std::uint8_t>(static_cast<int>(std::nearbyint(t)) + zero_point);
}

float clamp(float t, float low, float high) {
  t = low > t ? low : t;  // in this order a NaN stays a NaN
  return high < t ? high : t;
}

void add_u8(const AddU8& rule, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float left = static_cast<float>(a[i] - rule.a_zero) * rule.a_ratio;
    const float right = static_cast<float>(b[i] - rule.b_zero) * rule.b_ratio;
    y[i] = to_code(left + right, rule.zero_point, rule.low, rule.high);
  }
}

void mul_u8(const MulU8& rule, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float product = static_cast<float>((a[i] - rule.a_zero) * (b[i] - rule.b_zero));
    y[i] = to_code(product * rule.ratio, rule.zero_point, rule.low, rule.high);
  }
}

void add_f32(const float* a, const float* b, float low, float high, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = clamp(a[i] + b[i], low, high);
}

void mul_f32(const float* a, const float* b, float low, float high, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = clamp(a[i] * b[i], low, high);
}

void clamp_f32(const float* x, float low, float high, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = clamp(x[i], low, high);
}

}  // namespace

const EltwiseRow eltwise_scalar = {Isa::scalar, "eltwise_scalar", add_u8, mul_u8, add_f32, mul_f32, clamp_f32};

std::span<const EltwiseRow> eltwise_rows() {
  static const EltwiseRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/eltwise/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

}  // namespace ctk::kernels
