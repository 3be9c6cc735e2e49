#include "kernels/pool/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/conv_cases.h"
#include "tests/support/hostile_memory.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace {

using test::FencedArray;
using Codes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

ConvShape line(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t out, std::int64_t pad_left,
               std::int64_t pad_right) {
  ConvShape s;
  s.in_width = in, s.kernel_width = kernel, s.stride_width = stride, s.out_width = out;
  s.pad_left = pad_left, s.pad_right = pad_right;
  return s;
}

Floats average(const PoolRow& row, const ConvShape& s, bool count_include_pad, const Floats& values) {
  FencedArray<float> x(values), y(size(s.pixels() * s.in_channels));
  row.average_f32(s, count_include_pad, x.data(), y.data(), 0, s.batch * s.out_height);
  return y.values();
}

Codes average(const PoolRow& row, const ConvShape& s, bool count_include_pad, const AverageU8& rule,
              const Codes& codes) {
  FencedArray<std::uint8_t> x(codes), y(size(s.pixels() * s.in_channels));
  row.average_u8(s, count_include_pad, rule, x.data(), y.data(), 0, s.batch * s.out_height);
  return y.values();
}

TEST(PoolAverage, CountsWhatTheFlagAsksFor) {
  // [1 2 3 4], 3 wide, stride 2, one padded on both sides, size rounded up: windows (pad 1 2), (2 3 4), (4 pad beyond).
  const ConvShape s = line(4, 3, 2, 3, 1, 1);
  const Floats x = {1, 2, 3, 4};
  test::for_each_row(pool_rows(), [&](const PoolRow& row) {
    EXPECT_EQ(average(row, s, false, x), (Floats{1.5f, 3, 4}));  // 3/2, 9/3, 4/1
    EXPECT_EQ(average(row, s, true, x), (Floats{1, 3, 2}));      // 3/3, 9/3, 4/2: what lies beyond does not count
  });
}

TEST(PoolAverage, RoundsTiesOfCodesToEven) {
  // Two codes averaged: (1 + 2) / 2 = 1.5 -> 2, (2 + 3) / 2 = 2.5 -> 2, (255 + 254) / 2 = 254.5 -> 254.
  const ConvShape s = line(6, 2, 2, 3, 0, 0);
  test::for_each_row(pool_rows(), [&](const PoolRow& row) {
    EXPECT_EQ(average(row, s, false, AverageU8{}, {1, 2, 2, 3, 255, 254}), (Codes{2, 2, 254}));
  });
}

TEST(PoolAverage, MultipliesBeforeItDivides) {
  // 1 + 2 + .. + 6 + 10 = 31; 31 * 3.5 / 7 = 15.5 -> 16. 31 / 7 is not exact, and times 3.5 it falls below the tie.
  ConvShape s = line(7, 7, 1, 1, 0, 0);
  s.in_channels = s.out_channels = 17;
  Codes codes;
  for (std::uint8_t code : {1, 2, 3, 4, 5, 6, 10}) codes.insert(codes.end(), 17, code);
  AverageU8 rule;
  rule.ratio = 3.5f;
  test::for_each_row(pool_rows(),
                     [&](const PoolRow& row) { EXPECT_EQ(average(row, s, false, rule, codes), Codes(17, 16)); });
}

TEST(PoolAverage, TreatsPaddingAsRealZero) {
  // Zero point 100 on both sides: codes 110 and 120 are 10 and 20 steps. With one padded tap counted: 30 / 3 -> 110.
  const ConvShape s = line(2, 3, 1, 1, 1, 0);
  AverageU8 rule;
  rule.in_zero = rule.zero_point = 100;
  test::for_each_row(pool_rows(), [&](const PoolRow& row) {
    EXPECT_EQ(average(row, s, true, rule, {110, 120}), (Codes{110}));
    EXPECT_EQ(average(row, s, false, rule, {110, 120}), (Codes{115}));
  });
}

TEST(PoolAverage, SumsLargeWindowsExactly) {
  // 30x30 codes of 255, sixteen channels and one: sums of 229,500 do not fit into 16 bits.
  for (std::int64_t channels : {1, 16, 17, 40}) {
    const ConvShape s = test::square(30, channels, channels, 30, 1, 0);
    test::for_each_row(pool_rows(), [&](const PoolRow& row) {
      EXPECT_EQ(average(row, s, false, AverageU8{}, Codes(size(900 * channels), 255)), Codes(size(channels), 255));
    });
  }
}

TEST(PoolMax, TakesTheLargestInside) {
  const ConvShape s = line(4, 3, 2, 2, 1, 0);  // (pad 1 2), (2 3 4)
  const Floats floats = {-1, -2, -3, -4};
  test::for_each_row(pool_rows(), [&](const PoolRow& row) {
    FencedArray<float> x(floats), y(2);
    row.max_f32(s, x.data(), y.data(), 0, 1);
    EXPECT_EQ(y.values(), (Floats{-1, -2}));  // padding is not 0
    FencedArray<std::uint8_t> codes(Codes{4, 3, 9, 1}), most(2);
    row.max_u8(s, codes.data(), most.data(), 0, 1);
    EXPECT_EQ(most.values(), (Codes{4, 9}));
  });
}

TEST(PoolMax, IgnoresNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ConvShape s = line(2, 2, 1, 1, 0, 0);
  s.in_channels = s.out_channels = 9;
  Floats values(18, nan);
  for (std::size_t c = 0; c < 9; ++c) values[c % 2 == 0 ? c : 9 + c] = static_cast<float>(c);
  test::for_each_row(pool_rows(), [&](const PoolRow& row) {
    FencedArray<float> x(values), y(9);
    row.max_f32(s, x.data(), y.data(), 0, 1);
    EXPECT_EQ(y.values(), (Floats{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  });
}

TEST(PoolMax, KeepsTheFirstOfTwoZeros) {
  ConvShape s = line(2, 2, 1, 1, 0, 0);
  s.in_channels = s.out_channels = 9;
  Floats values(18, -0.0f);
  for (std::size_t c = 9; c < 18; ++c) values[c] = 0.0f;
  test::for_each_row(pool_rows(), [&](const PoolRow& row) {
    FencedArray<float> x(values), y(9);
    row.max_f32(s, x.data(), y.data(), 0, 1);
    for (float most : y.values()) EXPECT_TRUE(std::signbit(most));
  });
}

TEST(Pool, EveryRowMatchesOnRandomShapes) {
  Random random(test::test_seed(), "pool");
  const int cases = ctk::test::cases(150);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    ConvShape s = test::random_window(random, false);
    s.in_channels = s.out_channels = 1 + static_cast<std::int64_t>(random.below(70));
    s.pad_bottom = static_cast<std::int64_t>(random.below(2));
    s.pad_right = static_cast<std::int64_t>(random.below(2));
    const bool include = random.below(2) == 0;
    AverageU8 rule;
    rule.in_zero = static_cast<std::uint8_t>(random.below(256));
    rule.zero_point = static_cast<std::uint8_t>(random.below(256));
    rule.ratio = random.below(2) == 0 ? 1.0f : static_cast<float>(0.5 + random.uniform());
    SCOPED_TRACE(test::describe(s));
    const std::size_t count = size(s.batch * s.in_height * s.in_width * s.in_channels);
    const Floats floats = test::random_floats(random, count);
    const Codes codes = test::random_codes(random, count);
    Floats average_f32, max_f32;
    Codes average_u8, max_u8;
    for (std::int64_t p = 0; p < s.pixels(); ++p) {
      const std::int64_t ox = p % s.out_width, oy = p / s.out_width % s.out_height;
      const std::int64_t image = p / s.out_width / s.out_height;
      for (std::int64_t c = 0; c < s.in_channels; ++c) {
        float sum = 0.0f, most = -std::numeric_limits<float>::infinity();
        int code_sum = 0, code_most = 0, counted = 0;
        for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
          for (std::int64_t kx = 0; kx < s.kernel_width; ++kx) {
            const std::int64_t y = oy * s.stride_height + ky * s.dilation_height - s.pad_top;
            const std::int64_t x = ox * s.stride_width + kx * s.dilation_width - s.pad_left;
            const bool is_inside = y >= 0 && y < s.in_height && x >= 0 && x < s.in_width;
            const bool is_padding =
                y >= -s.pad_top && y < s.in_height + s.pad_bottom && x >= -s.pad_left && x < s.in_width + s.pad_right;
            if (include ? is_padding : is_inside) ++counted;
            if (!is_inside) continue;
            const std::size_t at = size(((image * s.in_height + y) * s.in_width + x) * s.in_channels + c);
            sum += floats[at];
            most = std::fmax(most, floats[at]);
            code_sum += codes[at] - rule.in_zero;
            code_most = std::max<int>(code_most, codes[at]);
          }
        }
        const float n = static_cast<float>(std::max(1, counted));
        average_f32.push_back(sum / n);
        max_f32.push_back(most);
        max_u8.push_back(static_cast<std::uint8_t>(code_most));
        const float scaled = static_cast<float>(code_sum) * rule.ratio;
        const double code =
            std::fmin(std::fmax(static_cast<double>(scaled / n), -rule.zero_point), 255 - rule.zero_point);
        average_u8.push_back(static_cast<std::uint8_t>(std::lrint(code) + rule.zero_point));
      }
    }
    test::for_each_row(pool_rows(), [&](const PoolRow& row) {
      ASSERT_EQ(average(row, s, include, floats), average_f32);
      ASSERT_EQ(average(row, s, include, rule, codes), average_u8);
      FencedArray<float> x(floats), y(max_f32.size());
      FencedArray<std::uint8_t> q(codes), r(max_u8.size());
      const std::int64_t rows = s.batch * s.out_height, middle = rows / 2;
      row.max_f32(s, x.data(), y.data(), 0, middle);  // in two parts, as threads do it
      row.max_f32(s, x.data(), y.data(), middle, rows);
      row.max_u8(s, q.data(), r.data(), 0, middle);
      row.max_u8(s, q.data(), r.data(), middle, rows);
      ASSERT_EQ(y.values(), max_f32);
      ASSERT_EQ(r.values(), max_u8);
    });
  }
}

}  // namespace
}  // namespace ctk::kernels
