// norm, softmax and rope: against figures in long double, and every row against the scalar one, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "core/parallel.h"
#include "kernels/norm/norm.h"
#include "kernels/rope/rope.h"
#include "kernels/softmax/softmax.h"
#include "tests/support/hostile_memory.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace {

using Floats = std::vector<float>;
using test::FencedArray;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kCounts[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 576, 1001};

Floats random_floats(std::size_t count, unsigned seed, float spread = 3.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.25f, spread);
  Floats values(count);
  for (float& value : values) value = normal(random);
  return values;
}

void expect_same_bits(const Floats& a, const Floats& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i]))
        << i << ": " << a[i] << " " << b[i];
  }
}

Floats normalized(const NormRow& row, bool centres, const Floats& x, const Floats& scale, const Floats& shift) {
  FencedArray<float> in(x), factors(scale), sums(shift), y(x.size());
  const Norm norm{x.size(), 1e-5, factors.data(), shift.empty() ? nullptr : sums.data()};
  (centres ? row.layer : row.rms)(norm, in.data(), y.data());
  return y.values();
}

TEST(NormRows, GiveWhatTheFormulaSays) {
  for (const std::size_t count : kCounts) {
    const Floats x = random_floats(count, 1), scale = random_floats(count, 2), shift = random_floats(count, 3);
    long double mean = 0, squares = 0, variance = 0;
    for (const float v : x) mean += v, squares += static_cast<long double>(v) * v;
    mean /= static_cast<long double>(count);
    for (const float v : x) variance += (v - mean) * (v - mean);
    const long double root = 1 / std::sqrt(squares / static_cast<long double>(count) + 1e-5L);
    const long double inverse = 1 / std::sqrt(variance / static_cast<long double>(count) + 1e-5L);
    test::for_each_row(norm_rows(), [&](const NormRow& row) {
      const Floats rms = normalized(row, false, x, scale, {}), layer = normalized(row, true, x, scale, shift);
      const Floats plain = normalized(row, true, x, scale, {});
      for (std::size_t i = 0; i < count; ++i) {
        const long double centred = (x[i] - mean) * inverse * scale[i];
        EXPECT_NEAR(rms[i], static_cast<double>(x[i] * root * scale[i]), 1e-5) << count << " " << i;
        EXPECT_NEAR(plain[i], static_cast<double>(centred), 1e-5) << count << " " << i;
        EXPECT_NEAR(layer[i], static_cast<double>(centred + shift[i]), 1e-5) << count << " " << i;
      }
    });
  }
}

TEST(NormRows, AllGiveTheScalarBits) {
  for (const std::size_t count : kCounts) {
    const Floats scale = random_floats(count, 2), shift = random_floats(count, 3);
    for (const float spread : {1e-20f, 1.0f, 1e18f}) {
      const Floats x = random_floats(count, 4, spread);
      test::for_each_row(norm_rows(), [&](const NormRow& row) {
        for (const bool centres : {false, true}) {
          expect_same_bits(normalized(row, centres, x, scale, shift),
                           normalized(norm_scalar, centres, x, scale, shift));
        }
        expect_same_bits(normalized(row, true, x, scale, {}), normalized(norm_scalar, true, x, scale, {}));
      });
    }
  }
}

// Numbers of one row: some or many, near 0 or as large as their squares may be.
Floats drawn_row(Random& random, std::size_t count) {
  const double spread = std::exp(80.0 * random.uniform() - 40.0);  // 4e-18 to 2e17
  Floats values(count);
  for (float& value : values) value = static_cast<float>(spread * random.normal());
  return values;
}

std::size_t drawn_count(Random& random) {
  return 1 + random.below(random.below(20) == 0 ? 600 : 50);
}

TEST(NormRows, AllGiveTheScalarBitsOnRandomRows) {
  Random random(test::test_seed(), "norm");
  const int cases = test::cases(10000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const std::size_t count = drawn_count(random);
    const Floats x = drawn_row(random, count), scale = drawn_row(random, count),
                 shift = random.below(2) == 0 ? drawn_row(random, count) : Floats{};
    const bool centres = random.below(2) == 0;
    const Floats expected = normalized(norm_scalar, centres, x, scale, shift);
    test::for_each_row(norm_rows(), [&](const NormRow& row) {
      if (row.isa != Isa::scalar) expect_same_bits(normalized(row, centres, x, scale, shift), expected);
    });
  }
}

TEST(NormRows, AnyNumberOfThreadsGivesTheSameBitsInPlace) {
  const std::size_t rows = 37, count = 301;
  const Floats x = random_floats(rows * count, 5), scale = random_floats(count, 6), shift = random_floats(count, 7);
  const Norm norm{count, 1e-6, scale.data(), shift.data()};
  test::for_each_row(norm_rows(), [&](const NormRow& row) {
    Floats one(x.size()), many = x;
    set_threads(1);
    normalize(row, norm, true, x.data(), one.data(), rows);
    set_threads(3);
    normalize(row, norm, true, many.data(), many.data(), rows);
    set_threads(1);
    expect_same_bits(one, many);
  });
}

Floats softmaxed(const SoftmaxRow& row, const Floats& x) {
  FencedArray<float> in(x), y(x.size());
  row.run(in.data(), y.data(), x.size());
  return y.values();
}

TEST(SoftmaxRows, GiveWhatTheFormulaSays) {
  for (const std::size_t count : kCounts) {
    const Floats x = random_floats(count, 8, 12.0f);
    const float largest = *std::ranges::max_element(x);
    long double sum = 0;
    for (const float v : x) sum += std::exp(static_cast<long double>(v) - largest);
    test::for_each_row(softmax_rows(), [&](const SoftmaxRow& row) {
      const Floats y = softmaxed(row, x);
      for (std::size_t i = 0; i < count; ++i) {
        const auto expected = static_cast<double>(std::exp(static_cast<long double>(x[i]) - largest) / sum);
        // What the difference in the exponent is rounded by comes on top.
        const double tolerance = (4e-7 + 6e-8 * (largest - x[i])) * expected + 1e-37;
        EXPECT_NEAR(y[i], expected, tolerance) << count << " " << i;
      }
    });
  }
}

TEST(SoftmaxRows, AllGiveTheScalarBits) {
  for (const std::size_t count : kCounts) {
    for (const float spread : {1e-6f, 5.0f, 60.0f, 1e30f}) {
      Floats x = random_floats(count, 9, spread);
      test::for_each_row(softmax_rows(), [&](const SoftmaxRow& row) {
        expect_same_bits(softmaxed(row, x), softmaxed(softmax_scalar, x));
      });
      x[count / 2] = -kInfinity;  // masked
      test::for_each_row(softmax_rows(), [&](const SoftmaxRow& row) {
        expect_same_bits(softmaxed(row, x), softmaxed(softmax_scalar, x));
      });
    }
  }
}

TEST(SoftmaxRows, AllGiveTheScalarBitsOnRandomRows) {
  Random random(test::test_seed(), "softmax");
  const int cases = test::cases(10000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    Floats x = drawn_row(random, drawn_count(random));
    if (random.below(4) == 0) x[random.below(x.size())] = random.below(2) == 0 ? -kInfinity : 0.0f;
    const Floats expected = softmaxed(softmax_scalar, x);
    test::for_each_row(softmax_rows(), [&](const SoftmaxRow& row) {
      if (row.isa != Isa::scalar) expect_same_bits(softmaxed(row, x), expected);
    });
  }
}

TEST(SoftmaxRows, WhatIsNoNumberSpoilsItsRowAndAMaskOnlyItself) {
  test::for_each_row(softmax_rows(), [&](const SoftmaxRow& row) {
    for (const std::size_t at : {0u, 4u, 8u}) {
      Floats x(9, 1.0f);
      x[at] = std::nanf("");
      for (const float y : softmaxed(row, x)) EXPECT_TRUE(std::isnan(y)) << at;
      x[at] = -kInfinity;
      const Floats masked = softmaxed(row, x);
      EXPECT_EQ(masked[at], 0.0f);
      EXPECT_NEAR(masked[(at + 1) % 9], 0.125f, 1e-7f);
    }
    for (const float y : softmaxed(row, Floats(9, -kInfinity))) EXPECT_TRUE(std::isnan(y));
    EXPECT_EQ(softmaxed(row, {42.0f}), Floats{1.0f});
  });
}

TEST(SoftmaxRows, InfinitiesAndNaNGiveWhatTheContractSaysAtEveryPlace) {
  const float nan = std::nanf("");
  struct Row {
    float first, second;  // two elements of a row, elsewhere `rest`
    float rest;
    bool is_spoilt;
  };
  const Row cases[] = {
      {kInfinity, 1, 1, true},    {kInfinity, kInfinity, 1, true},    {kInfinity, -kInfinity, -kInfinity, true},
      {kInfinity, nan, 1, true},  {nan, 1, -kInfinity, true},         {nan, nan, nan, true},
      {nan, -kInfinity, 1, true}, {-nan, 3e38f, -3e38f, true},        {kInfinity, kInfinity, kInfinity, true},
      {-kInfinity, 1, 1, false},  {-kInfinity, -kInfinity, 1, false}, {-kInfinity, -kInfinity, -kInfinity, true},
  };
  for (const Row& c : cases) {
    for (const std::size_t count : {3u, 4u, 8u, 9u, 17u, 40u}) {
      for (std::size_t at = 0; at < count; ++at) {
        Floats x(count, c.rest);
        x[at] = c.first;
        x[(at + 2) % count] = c.second;
        const auto finite =
            static_cast<std::size_t>(std::ranges::count_if(x, [](float v) { return std::isfinite(v); }));
        test::for_each_row(softmax_rows(), [&](const SoftmaxRow& row) {
          const Floats y = softmaxed(row, x);
          for (std::size_t i = 0; i < count; ++i) {
            if (c.is_spoilt) {
              ASSERT_TRUE(std::isnan(y[i])) << count << " " << at << " " << i;
            } else {  // the finite ones are alike and share 1
              const float share = std::isfinite(x[i]) ? 1.0f / static_cast<float>(finite) : 0.0f;
              ASSERT_FLOAT_EQ(y[i], share) << count << " " << at << " " << i;
            }
          }
        });
      }
    }
  }
}

Floats turned(const RopeRow& row, const Rope& rope, const Floats& x, const Floats& cosines, const Floats& sines) {
  FencedArray<float> in(x), c(cosines), s(sines), y(x.size());
  row.turn(rope, in.data(), c.data(), s.data(), y.data());
  return y.values();
}

TEST(RopeRows, TurnPairsByTheirAngle) {
  // A quarter turn: (a, b) -> (-b, a). Two heads of five elements, of which four are turned.
  const Floats x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  test::for_each_row(rope_rows(), [&](const RopeRow& row) {
    EXPECT_EQ(turned(row, {2, 5, 2, false}, x, {0, 0}, {1, 1}), (Floats{-3, -4, 1, 2, 5, -8, -9, 6, 7, 10}));
    EXPECT_EQ(turned(row, {2, 5, 2, true}, x, {0, 0}, {1, 1}), (Floats{-2, 1, -4, 3, 5, -7, 6, -9, 8, 10}));
  });
}

TEST(RopeRows, AllGiveTheScalarBitsAlsoInPlace) {
  for (const std::size_t pairs : {1u, 3u, 4u, 5u, 8u, 11u, 16u, 32u, 37u}) {
    for (const bool interleaved : {false, true}) {
      const Rope rope{3, 2 * pairs + (pairs % 2) * 6, pairs, interleaved};
      const Floats x = random_floats(rope.heads * rope.size, 10), c = random_floats(pairs, 11),
                   s = random_floats(pairs, 12);
      const Floats expected = turned(rope_scalar, rope, x, c, s);
      test::for_each_row(rope_rows(), [&](const RopeRow& row) {
        expect_same_bits(turned(row, rope, x, c, s), expected);
        Floats same = x;
        row.turn(rope, same.data(), c.data(), s.data(), same.data());
        expect_same_bits(same, expected);
      });
    }
  }
}

TEST(RopeRows, AllGiveTheScalarBitsOnRandomHeads) {
  Random random(test::test_seed(), "rope");
  const int cases = test::cases(10000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    Rope rope{1 + random.below(4), 0, random.below(40), random.below(2) == 0};
    rope.size = std::max<std::size_t>(1, 2 * rope.pairs + random.below(3) * random.below(9));
    const Floats x = drawn_row(random, rope.heads * rope.size), c = drawn_row(random, rope.pairs),
                 s = drawn_row(random, rope.pairs), expected = turned(rope_scalar, rope, x, c, s);
    test::for_each_row(rope_rows(), [&](const RopeRow& row) {
      if (row.isa != Isa::scalar) expect_same_bits(turned(row, rope, x, c, s), expected);
    });
  }
}

}  // namespace
}  // namespace ctk::kernels
