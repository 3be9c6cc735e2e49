#include "core/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace ctk {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(DType, NamesComeBackAsTheirType) {
  for (int i = 0; i <= static_cast<int>(DType::string); ++i) {
    const DType dtype = static_cast<DType>(i);
    ASSERT_TRUE(dtype_from_name(name_of(dtype)).has_value());
    EXPECT_EQ(*dtype_from_name(name_of(dtype)), dtype);
  }
  EXPECT_FALSE(dtype_from_name("float").has_value());
}

TEST(DType, KnowsItsBits) {
  EXPECT_EQ(bits_of(DType::f64), 64);
  EXPECT_EQ(bits_of(DType::bf16), 16);
  EXPECT_EQ(bits_of(DType::boolean), 8);
  EXPECT_EQ(bits_of(DType::u4), 4);
  EXPECT_EQ(bits_of(DType::string), 0);
}

// The value of half bits by the definition of the format.
double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa == 0 ? sign * kInfinity : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryValueReadsRightAndComesBack) {
  for (int i = 0; i < 65536; ++i) {
    const std::uint16_t bits = static_cast<std::uint16_t>(i);
    const float value = half_to_float(bits);
    if (std::isnan(half_value(bits))) {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_TRUE(std::isnan(half_to_float(float_to_half(value))));
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), half_value(bits)) << i;
    ASSERT_EQ(float_to_half(value), bits) << i;  // the sign of zero too
  }
}

TEST(Half, RoundsToTheNearerAndTiesToEven) {
  // Between each two neighbours: just below the middle, the middle (to the even one), just above.
  for (int i = 0; i < 0x7bff; ++i) {
    const std::uint16_t low = static_cast<std::uint16_t>(i), high = static_cast<std::uint16_t>(i + 1);
    const float middle = static_cast<float>((half_value(low) + half_value(high)) / 2);
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0f)), low);
    ASSERT_EQ(float_to_half(middle), i % 2 == 0 ? low : high);
    ASSERT_EQ(float_to_half(std::nextafter(middle, 1e9f)), high);
    ASSERT_EQ(float_to_half(-middle), (i % 2 == 0 ? low : high) | 0x8000);
  }
}

TEST(Half, OverflowsToInfinityAndUnderflowsToZero) {
  EXPECT_EQ(float_to_half(65504.0f), 0x7bff);
  EXPECT_EQ(float_to_half(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);  // half-way to 65536: even
  EXPECT_EQ(float_to_half(-1e30f), 0xfc00);
  EXPECT_EQ(float_to_half(kInfinity), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0x0000);  // half of the least half: a tie, to even
  EXPECT_EQ(float_to_half(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
  EXPECT_EQ(float_to_half(-1e-30f), 0x8000);
}

TEST(Bfloat, EveryValueComesBack) {
  for (int i = 0; i < 65536; ++i) {
    const std::uint16_t bits = static_cast<std::uint16_t>(i);
    const float value = bfloat_to_float(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(value))));
    } else {
      ASSERT_EQ(float_to_bfloat(value), bits);
    }
  }
}

TEST(Bfloat, RoundsTiesToEven) {
  // 1 is 0x3f80 and its neighbour 0x3f81 is 1 + 2^-7.
  EXPECT_EQ(float_to_bfloat(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(float_to_bfloat(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);
  EXPECT_EQ(float_to_bfloat(1.0f + 0x1p-7f + 0x1p-8f), 0x3f82);
  EXPECT_EQ(float_to_bfloat(std::numeric_limits<float>::max()), 0x7f80);
  // A NaN whose upper bits are those of infinity must not become infinity.
  EXPECT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace ctk
