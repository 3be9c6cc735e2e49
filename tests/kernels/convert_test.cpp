#include "kernels/convert/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/quant_tensor.h"
#include "tests/support/hostile_memory.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace {

using test::FencedArray;
using Codes = std::vector<std::uint8_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Codes quantize_with(const ConvertRow& row, const std::vector<float>& values, float scale, std::uint8_t zero_point) {
  FencedArray<float> x(values);
  FencedArray<std::uint8_t> y(values.size());
  row.quantize(x.data(), scale, zero_point, y.data(), values.size());
  return y.values();
}

TEST(ConvertQuantize, RoundsTiesToEvenAndSaturates) {
  test::for_each_row(convert_rows(), [&](const ConvertRow& row) {
    // scale 0.5, zero point 10: 0.25 is half a step -> 10, 0.75 is 1.5 -> 12, -0.25 -> 10, -0.75 -> 8.
    EXPECT_EQ(quantize_with(row, {0.25f, 0.75f, -0.25f, -0.75f}, 0.5f, 10), (Codes{10, 12, 10, 8}));
    EXPECT_EQ(quantize_with(row, {-1e30f, 1e30f, -kInfinity, kInfinity, 0.0f, -0.0f}, 0.5f, 10),
              (Codes{0, 255, 0, 255, 10, 10}));
  });
}

TEST(ConvertQuantize, MapsNaNToTheZeroPoint) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  test::for_each_row(convert_rows(), [&](const ConvertRow& row) {
    for (std::uint8_t zero_point : {0, 77, 255}) {
      EXPECT_EQ(quantize_with(row, std::vector<float>(35, nan), 0.1f, zero_point), Codes(35, zero_point));
    }
  });
}

TEST(ConvertQuantize, DividesAsTheRuleInCoreDoes) {
  Random random(test::test_seed(), "quantize");
  for (float scale : {0.0117647f, 1.0f / 3.0f, 0.1f, 7.3e-5f, 1e-38f, 3e38f}) {
    for (int zero_point : {0, 1, 128, 254, 255}) {
      auto x = test::random_floats(random, 3000, -200.0, 200.0);
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (i % 3 == 0) x[i] = std::nearbyint(x[i]) * 0.5f;  // ties for scales that divide them
        x[i] *= i % 7 == 0 ? 1.0f : scale;
      }
      Codes expected;
      const ActivationQuant rule{scale, static_cast<std::uint8_t>(zero_point)};
      for (float value : x) expected.push_back(ctk::quantize(value, rule));
      test::for_each_row(convert_rows(), [&](const ConvertRow& row) {
        ASSERT_EQ(quantize_with(row, x, scale, static_cast<std::uint8_t>(zero_point)), expected);
      });
    }
  }
}

TEST(ConvertQuantize, TakesEveryLength) {
  Random random(test::test_seed(), "lengths");
  test::for_each_row(convert_rows(), [&](const ConvertRow& row) {
    for (std::size_t count = 0; count <= 70; ++count) {
      const auto x = test::random_floats(random, count, -3.0, 3.0);
      ASSERT_EQ(quantize_with(row, x, 0.02f, 100), quantize_with(convert_scalar, x, 0.02f, 100));
    }
  });
}

TEST(ConvertDequantize, MapsEveryCodeExactly) {
  Codes all;
  for (int i = 0; i < 259; ++i) all.push_back(static_cast<std::uint8_t>(i));
  for (int zero_point : {0, 3, 255}) {
    std::vector<float> expected;
    for (std::uint8_t code : all) expected.push_back(static_cast<float>(code - zero_point) * 0.3f);
    test::for_each_row(convert_rows(), [&](const ConvertRow& row) {
      FencedArray<std::uint8_t> x(all);
      FencedArray<float> y(all.size());
      row.dequantize(x.data(), 0.3f, static_cast<std::uint8_t>(zero_point), y.data(), all.size());
      EXPECT_EQ(y.values(), expected);
      EXPECT_EQ(y.values()[static_cast<std::size_t>(zero_point)], 0.0f);  // real 0 is exact
    });
  }
}

template <class T>
void check_layouts(std::size_t channels, std::size_t pixels, void (*to_last)(const T*, T*, std::size_t, std::size_t),
                   void (*to_first)(const T*, T*, std::size_t, std::size_t)) {
  std::vector<T> first(channels * pixels), last(channels * pixels);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t p = 0; p < pixels; ++p) {
      first[c * pixels + p] = last[p * channels + c] = static_cast<T>(31 * c + 7 * p + c * p);
    }
  }
  FencedArray<T> planes(first), result(first.size()), picture(last), back(first.size());
  to_last(planes.data(), result.data(), channels, pixels);
  ASSERT_EQ(result.values(), last) << channels << " channels, " << pixels << " pixels";
  to_first(picture.data(), back.data(), channels, pixels);
  ASSERT_EQ(back.values(), first) << channels << " channels, " << pixels << " pixels";
}

TEST(ConvertLayout, TurnsChannelsFirstIntoChannelsLastAndBack) {
  test::for_each_row(convert_rows(), [&](const ConvertRow& row) {
    for (std::size_t channels : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48}) {
      for (std::size_t pixels : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 49, 64, 100}) {
        check_layouts<float>(channels, pixels, row.to_channels_last_f32, row.to_channels_first_f32);
        check_layouts<std::uint8_t>(channels, pixels, row.to_channels_last_u8, row.to_channels_first_u8);
      }
    }
  });
}

TEST(Convert, FollowsTheRulesOnRandomLengthsAndNotes) {
  Random random(test::test_seed(), "convert");
  const int cases = test::cases(10000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const ActivationQuant rule{static_cast<float>(std::exp(20.0 * random.uniform() - 10.0)),
                               static_cast<std::uint8_t>(random.below(256))};
    auto x = test::random_floats(random, random.below(150), -300.0, 300.0);
    Codes expected;
    for (float& value : x) {
      value *= rule.scale;
      if (random.below(4) == 0) value = (std::nearbyint(value / rule.scale) + 0.5f) * rule.scale;  // near a tie
      expected.push_back(ctk::quantize(value, rule));
    }
    std::vector<float> reals;
    for (std::uint8_t code : expected) reals.push_back(ctk::dequantize(code, rule));
    const std::size_t channels = 1 + random.below(40), pixels = random.below(60);
    test::for_each_row(convert_rows(), [&](const ConvertRow& row) {
      ASSERT_EQ(quantize_with(row, x, rule.scale, rule.zero_point), expected);
      FencedArray<std::uint8_t> codes(expected);
      FencedArray<float> y(expected.size());
      row.dequantize(codes.data(), rule.scale, rule.zero_point, y.data(), expected.size());
      ASSERT_EQ(y.values(), reals);
      check_layouts<float>(channels, pixels, row.to_channels_last_f32, row.to_channels_first_f32);
      check_layouts<std::uint8_t>(channels, pixels, row.to_channels_last_u8, row.to_channels_first_u8);
    });
  }
}

}  // namespace
}  // namespace ctk::kernels
