#include "kernels/eltwise/eltwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/hostile_memory.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace {

using test::FencedArray;
using Codes = std::vector<std::uint8_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Codes add(const EltwiseRow& row, const AddU8& rule, const Codes& a, const Codes& b) {
  FencedArray<std::uint8_t> left(a), right(b), y(a.size());
  row.add_u8(rule, left.data(), right.data(), y.data(), a.size());
  return y.values();
}

Codes multiply(const EltwiseRow& row, const MulU8& rule, const Codes& a, const Codes& b) {
  FencedArray<std::uint8_t> left(a), right(b), y(a.size());
  row.mul_u8(rule, left.data(), right.data(), y.data(), a.size());
  return y.values();
}

// The last step from the header, in doubles where it is exact.
std::uint8_t code_of(float t, int zero_point, int low, int high) {
  const double clamped = std::fmin(std::fmax(static_cast<double>(t), low - zero_point), high - zero_point);
  return static_cast<std::uint8_t>(std::lrint(clamped) + zero_point);
}

// Every pair of codes there is.
struct AllPairs {
  Codes a = Codes(65536), b = Codes(65536);
  AllPairs() {
    for (std::size_t i = 0; i < 65536; ++i) {
      a[i] = static_cast<std::uint8_t>(i >> 8);
      b[i] = static_cast<std::uint8_t>(i);
    }
  }
};

TEST(EltwiseAddU8, RoundsTiesToEven) {
  AddU8 rule;
  rule.a_ratio = 0.5f;
  test::for_each_row(eltwise_rows(), [&](const EltwiseRow& row) {
    // 0.5 -> 0, 1.5 -> 2, 2.5 -> 2, 3.5 -> 4; with b: 0.5 + 1 -> 2, 1.5 + 1 = 2.5 -> 2.
    EXPECT_EQ(add(row, rule, {1, 3, 5, 7, 1, 3}, {0, 0, 0, 0, 1, 1}), (Codes{0, 2, 2, 4, 2, 2}));
  });
}

TEST(EltwiseAddU8, TakesTheLowLimitWhereTheSumIsNoNumber) {
  AddU8 rule;
  rule.zero_point = 10, rule.low = 5, rule.high = 200;
  rule.a_ratio = std::numeric_limits<float>::quiet_NaN();
  test::for_each_row(eltwise_rows(), [&](const EltwiseRow& row) {
    EXPECT_EQ(add(row, rule, Codes(35, 1), Codes(35, 2)), Codes(35, 5));
  });
}

TEST(EltwiseAddU8, SaturatesAtItsLimits) {
  AddU8 rule;
  rule.zero_point = 10, rule.low = 10, rule.high = 200;  // a Relu, and an upper limit
  rule.a_zero = 255;
  test::for_each_row(eltwise_rows(), [&](const EltwiseRow& row) {
    // a = 0 is -255: below the limit. a = 255 is 0, so b = 100 gives 110; b = 255 gives 265, limited to 200.
    EXPECT_EQ(add(row, rule, {0, 255, 255}, {100, 100, 255}), (Codes{10, 110, 200}));
  });
}

TEST(EltwiseAddU8, MatchesTheRuleOnAllPairs) {
  Random random(test::test_seed(), "add");
  const AllPairs pairs;
  for (int i = 0; i < 12; ++i) {
    AddU8 rule;
    rule.a_zero = i == 0 ? 0 : i == 1 ? 255 : static_cast<std::uint8_t>(random.below(256));
    rule.b_zero = i == 0 ? 255 : i == 1 ? 0 : static_cast<std::uint8_t>(random.below(256));
    rule.zero_point = static_cast<std::uint8_t>(random.below(256));
    rule.a_ratio = i % 3 == 0 ? 0.25f : static_cast<float>(2.0 * random.uniform());
    rule.b_ratio = i % 3 == 0 ? 0.5f : static_cast<float>(2.0 * random.uniform());
    if (i % 4 == 3) rule.low = rule.zero_point;
    Codes expected(65536);
    for (std::size_t p = 0; p < expected.size(); ++p) {
      const float left = static_cast<float>(pairs.a[p] - rule.a_zero) * rule.a_ratio;
      const float right = static_cast<float>(pairs.b[p] - rule.b_zero) * rule.b_ratio;
      expected[p] = code_of(left + right, rule.zero_point, rule.low, rule.high);
    }
    test::for_each_row(eltwise_rows(),
                       [&](const EltwiseRow& row) { ASSERT_EQ(add(row, rule, pairs.a, pairs.b), expected); });
  }
}

TEST(EltwiseMulU8, MatchesTheRuleOnAllPairs) {
  Random random(test::test_seed(), "mul");
  const AllPairs pairs;
  for (int i = 0; i < 12; ++i) {
    MulU8 rule;
    rule.a_zero = i == 0 ? 0 : i == 1 ? 255 : static_cast<std::uint8_t>(random.below(256));
    rule.b_zero = i == 0 ? 255 : i == 1 ? 255 : static_cast<std::uint8_t>(random.below(256));
    rule.zero_point = static_cast<std::uint8_t>(random.below(256));
    rule.ratio = i % 3 == 0 ? 0x1p-7f : static_cast<float>(0.02 * random.uniform());
    Codes expected(65536);
    for (std::size_t p = 0; p < expected.size(); ++p) {
      const int product = (pairs.a[p] - rule.a_zero) * (pairs.b[p] - rule.b_zero);
      expected[p] = code_of(static_cast<float>(product) * rule.ratio, rule.zero_point, rule.low, rule.high);
    }
    test::for_each_row(eltwise_rows(),
                       [&](const EltwiseRow& row) { ASSERT_EQ(multiply(row, rule, pairs.a, pairs.b), expected); });
  }
}

TEST(EltwiseMulU8, RoundsTiesToEven) {
  MulU8 rule;
  rule.ratio = 0.5f;
  test::for_each_row(eltwise_rows(), [&](const EltwiseRow& row) {
    // 1*1/2 = 0.5 -> 0, 3*1/2 = 1.5 -> 2, 5*1/2 = 2.5 -> 2, 255*255/2 -> 255.
    EXPECT_EQ(multiply(row, rule, {1, 3, 5, 255}, {1, 1, 1, 255}), (Codes{0, 2, 2, 255}));
  });
}

TEST(Eltwise, TakesEveryLengthAndItsOwnInputAsOutput) {
  Random random(test::test_seed(), "lengths");
  AddU8 add_rule;
  add_rule.a_zero = 3, add_rule.b_ratio = 0.7f;
  MulU8 mul_rule;
  mul_rule.ratio = 0.01f;
  test::for_each_row(eltwise_rows(), [&](const EltwiseRow& row) {
    for (std::size_t count = 0; count <= 100; ++count) {
      const Codes a = test::random_codes(random, count), b = test::random_codes(random, count);
      const Codes sums = add(eltwise_scalar, add_rule, a, b), products = multiply(eltwise_scalar, mul_rule, a, b);
      FencedArray<std::uint8_t> left(a), right(b), both(a);
      row.add_u8(add_rule, left.data(), right.data(), left.data(), count);
      ASSERT_EQ(left.values(), sums) << count;
      FencedArray<std::uint8_t> again(a);
      row.mul_u8(mul_rule, again.data(), right.data(), right.data(), count);
      ASSERT_EQ(right.values(), products) << count;
      row.add_u8(add_rule, both.data(), both.data(), both.data(), count);
      ASSERT_EQ(both.values(), add(eltwise_scalar, add_rule, a, a)) << count;
    }
  });
}

TEST(Eltwise, FollowsTheRulesOnRandomLengthsAndRules) {
  Random random(test::test_seed(), "eltwise");
  const auto code = [&] { return static_cast<std::uint8_t>(random.below(256)); };
  const auto ratio = [&](double most) { return static_cast<float>(most * random.uniform()); };
  const int cases = test::cases(10000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const std::size_t count = random.below(100);
    const std::uint8_t zero = code(), low = random.below(2) == 0 ? zero : std::uint8_t{0};
    const AddU8 sum{code(), code(), zero, ratio(2.0), ratio(2.0), low, 255};
    const MulU8 product{code(), code(), zero, ratio(0.02), low, 255};
    const Codes a = test::random_codes(random, count), b = test::random_codes(random, count);
    const auto x = test::random_floats(random, count, -4, 4), y = test::random_floats(random, count, -4, 4);
    Codes sums, products;
    std::vector<float> float_sums, float_products;
    for (std::size_t at = 0; at < count; ++at) {
      const float left = static_cast<float>(a[at] - sum.a_zero) * sum.a_ratio;
      const float right = static_cast<float>(b[at] - sum.b_zero) * sum.b_ratio;
      sums.push_back(code_of(left + right, zero, low, 255));
      const int whole = (a[at] - product.a_zero) * (b[at] - product.b_zero);
      products.push_back(code_of(static_cast<float>(whole) * product.ratio, zero, low, 255));
      float_sums.push_back(std::fmin(std::fmax(x[at] + y[at], -1.0f), 6.0f));
      float_products.push_back(std::fmin(std::fmax(x[at] * y[at], -1.0f), 6.0f));
    }
    test::for_each_row(eltwise_rows(), [&](const EltwiseRow& row) {
      ASSERT_EQ(add(row, sum, a, b), sums);
      ASSERT_EQ(multiply(row, product, a, b), products);
      FencedArray<float> left(x), right(y), out(count);
      row.add_f32(left.data(), right.data(), -1.0f, 6.0f, out.data(), count);
      ASSERT_EQ(out.values(), float_sums);
      row.mul_f32(left.data(), right.data(), -1.0f, 6.0f, out.data(), count);
      ASSERT_EQ(out.values(), float_products);
    });
  }
}

TEST(EltwiseF32, AddsMultipliesAndClamps) {
  Random random(test::test_seed(), "floats");
  test::for_each_row(eltwise_rows(), [&](const EltwiseRow& row) {
    for (std::size_t count = 0; count <= 40; ++count) {
      const auto a = test::random_floats(random, count, -4, 4), b = test::random_floats(random, count, -4, 4);
      std::vector<float> sums, products, clamped;
      for (std::size_t i = 0; i < count; ++i) {
        sums.push_back(std::fmin(std::fmax(a[i] + b[i], 0.0f), 3.0f));
        products.push_back(std::fmin(std::fmax(a[i] * b[i], -kInfinity), kInfinity));
        clamped.push_back(std::fmin(std::fmax(a[i], -1.0f), 2.0f));
      }
      FencedArray<float> left(a), right(b), y(count);
      row.add_f32(left.data(), right.data(), 0.0f, 3.0f, y.data(), count);
      ASSERT_EQ(y.values(), sums);
      row.clamp_f32(left.data(), -1.0f, 2.0f, y.data(), count);
      ASSERT_EQ(y.values(), clamped);
      row.mul_f32(left.data(), right.data(), -kInfinity, kInfinity, left.data(), count);  // in place
      ASSERT_EQ(left.values(), products);
    }
  });
}

TEST(EltwiseF32, LeavesMinusZeroAtALimitOfZero) {
  const std::vector<float> x(11, -0.0f);
  test::for_each_row(eltwise_rows(), [&](const EltwiseRow& row) {
    FencedArray<float> in(x), y(x.size());
    row.clamp_f32(in.data(), 0.0f, 6.0f, y.data(), x.size());
    for (float value : y.values()) EXPECT_TRUE(std::signbit(value));
  });
}

TEST(EltwiseF32, KeepsNaNAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {nan, kInfinity, -kInfinity, 0.0f, nan, kInfinity, -kInfinity, 0.0f, nan, kInfinity};
  test::for_each_row(eltwise_rows(), [&](const EltwiseRow& row) {
    FencedArray<float> in(x), y(x.size());
    row.clamp_f32(in.data(), -kInfinity, kInfinity, y.data(), x.size());
    const auto open = y.values();
    row.clamp_f32(in.data(), 0.0f, 6.0f, y.data(), x.size());
    const auto closed = y.values();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        EXPECT_TRUE(std::isnan(open[i]) && std::isnan(closed[i]));
      } else {
        EXPECT_EQ(open[i], x[i]);
        EXPECT_EQ(closed[i], x[i] > 0.0f ? 6.0f : 0.0f);
      }
    }
  });
}

}  // namespace
}  // namespace ctk::kernels
