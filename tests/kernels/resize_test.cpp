#include "kernels/resize/resize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/support/hostile_memory.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace {

using test::FencedArray;
using Codes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Tables of one axis, and the kernel's view of them.
struct Axis {
  std::int64_t in = 1, out = 1, taps = 1;
  std::vector<std::int64_t> at{0};
  std::vector<double> weight{1.0};

  ResizeAxis view() const { return {in, out, taps, at.data(), weight.data()}; }
};

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

Floats blended(const ResizeRow& row, const Resize& r, const Floats& values) {
  FencedArray<float> x(values), y(size(r.batch * r.y.out * r.x.out * r.channels));
  const std::int64_t rows = r.batch * r.y.out, middle = rows / 2;
  row.blend_f32(r, x.data(), y.data(), 0, middle);  // in two parts, as threads do it
  row.blend_f32(r, x.data(), y.data(), middle, rows);
  return y.values();
}

Codes blended(const ResizeRow& row, const Resize& r, const ResizeCodes& codes, const Codes& values) {
  FencedArray<std::uint8_t> x(values), y(size(r.batch * r.y.out * r.x.out * r.channels));
  const std::int64_t rows = r.batch * r.y.out, middle = rows / 2;
  row.blend_u8(r, codes, x.data(), y.data(), 0, middle);
  row.blend_u8(r, codes, x.data(), y.data(), middle, rows);
  return y.values();
}

template <class T>
std::vector<T> moved(const ResizeRow& row, const Resize& r, const std::vector<T>& values) {
  FencedArray<T> x(values), y(size(r.batch * r.y.out * r.x.out * r.channels));
  const std::int64_t rows = r.batch * r.y.out, middle = rows / 2;
  row.nearest(r, sizeof(T), x.data(), y.data(), 0, middle);
  row.nearest(r, sizeof(T), x.data(), y.data(), middle, rows);
  return y.values();
}

// Two pixels to four by halves of a pixel: positions -0.25, 0.25, 0.75, 1.25.
Axis doubled() {
  return {2, 4, 2, {0, 1, 0, 1, 0, 1, 1, 1}, {1.0, 0.0, 0.75, 0.25, 0.25, 0.75, 1.0, 0.0}};
}

TEST(Resize, BlendsNeighboursByTheirWeights) {
  const Axis axis = doubled(), one;
  test::for_each_row(resize_rows(), [&](const ResizeRow& row) {
    // Two channels: 0 -> 4 and 10 -> 2.
    EXPECT_EQ(blended(row, {1, 2, one.view(), axis.view()}, {0, 10, 4, 2}), (Floats{0, 10, 1, 8, 3, 4, 4, 2}));
    EXPECT_EQ(blended(row, {1, 2, axis.view(), one.view()}, {0, 10, 4, 2}), (Floats{0, 10, 1, 8, 3, 4, 4, 2}));
    // Both ways over [0 4; 8 12]: rows 0, 2, 6, 8 by columns 0, 1, 3, 4.
    EXPECT_EQ(blended(row, {1, 1, axis.view(), axis.view()}, {0, 4, 8, 12}),
              (Floats{0, 1, 3, 4, 2, 3, 5, 6, 6, 7, 9, 10, 8, 9, 11, 12}));
  });
}

TEST(Resize, RoundsTheFloatOfASumToACode) {
  const Axis axis = doubled(), one;
  test::for_each_row(resize_rows(), [&](const ResizeRow& row) {
    // Steps of 0.5 around code 10 in, of 1 around 20 out. Codes 12, 18: 1 and 4, so 1, 1.75, 3.25, 4 -> 21, 22, 23, 24.
    const ResizeCodes codes{0.5f, 1.0f, 10, 20};
    EXPECT_EQ(blended(row, {1, 1, one.view(), axis.view()}, codes, {12, 18}), (Codes{21, 22, 23, 24}));
    // 0 and 2: 0.5 and 1.5 lie between two steps -> the even ones; -20 and 490 saturate, 107.5 -> 108.
    EXPECT_EQ(blended(row, {1, 1, one.view(), axis.view()}, codes, {10, 14}), (Codes{20, 20, 22, 22}));
    EXPECT_EQ(blended(row, {1, 1, one.view(), axis.view()}, {2.0f, 1.0f, 10, 10}, {0, 255}), (Codes{0, 118, 255, 255}));
  });
}

TEST(Resize, DoesNotReadWhatHasNoSay) {
  const Axis axis = doubled(), one;
  test::for_each_row(resize_rows(), [&](const ResizeRow& row) {
    for (std::int64_t channels : {1, 8, 9}) {
      Floats x(size(2 * channels), 3.0f);
      for (std::int64_t c = 0; c < channels; ++c) x[size(channels + c)] = kInfinity;
      const Floats y = blended(row, {1, channels, one.view(), axis.view()}, x);
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i < size(channels) ? 3.0f : kInfinity) << i;
    }
    // Weights of 0 all along: an empty sum.
    const Axis none{1, 1, 2, {0, 0}, {0.0, 0.0}};
    EXPECT_EQ(blended(row, {1, 1, one.view(), none.view()}, {std::nanf("")}), Floats{0.0f});
    EXPECT_EQ(blended(row, {1, 1, one.view(), none.view()}, {0.5f, 0.5f, 3, 7}, {200}), Codes{7});
  });
}

TEST(Resize, ANaNReachesWhatItHasASayIn) {
  const Axis axis = doubled(), one;
  test::for_each_row(resize_rows(), [&](const ResizeRow& row) {
    for (std::int64_t channels : {1, 9}) {
      Floats x(size(2 * channels), 1.0f);
      x[0] = std::nanf("");
      const Floats y = blended(row, {1, channels, one.view(), axis.view()}, x);
      for (std::size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(std::isnan(y[i]), i % size(channels) == 0 && i < size(3 * channels)) << i;
    }
  });
}

TEST(Resize, MovesPixelsOfEverySize) {
  const Axis rows{3, 4, 1, {2, 2, 0, 1}, {1, 1, 1, 1}}, columns{2, 5, 1, {1, 0, 0, 1, 1}, {1, 1, 1, 1, 1}};
  test::for_each_row(resize_rows(), [&](const ResizeRow& row) {
    for (std::int64_t channels = 1; channels <= 70; ++channels) {
      const Resize r{2, channels, rows.view(), columns.view()};
      Codes codes(size(2 * 3 * 2 * channels));
      Floats floats(codes.size());
      for (std::size_t i = 0; i < codes.size(); ++i) {
        codes[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
        floats[i] = static_cast<float>(i);
      }
      Codes expected_codes;
      Floats expected_floats;
      for (std::int64_t image = 0; image < 2; ++image) {
        for (std::int64_t iy : rows.at) {
          for (std::int64_t ix : columns.at) {
            for (std::int64_t c = 0; c < channels; ++c) {
              const std::size_t at = size(((image * 3 + iy) * 2 + ix) * channels + c);
              expected_codes.push_back(codes[at]);
              expected_floats.push_back(floats[at]);
            }
          }
        }
      }
      ASSERT_EQ(moved(row, r, codes), expected_codes) << channels;
      ASSERT_EQ(moved(row, r, floats), expected_floats) << channels;
    }
  });
}

std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

// Any tables: sizes around a step of every row, neighbours in any order, weights of all signs and 0.
Axis random_axis(Random& random) {
  Axis axis;
  axis.in = pick(random, 1, 6), axis.out = pick(random, 1, 7), axis.taps = std::int64_t{1} << random.below(3);
  axis.at.clear(), axis.weight.clear();
  for (std::int64_t i = 0; i < axis.out * axis.taps; ++i) {
    axis.at.push_back(pick(random, 0, axis.in - 1));
    axis.weight.push_back(random.below(5) == 0 ? 0.0 : axis.taps == 1 ? 1.0 : random.uniform() * 1.5 - 0.5);
  }
  return axis;
}

// The contract, element by element; real(i) is what element i of x stands for.
template <class Real>
Floats by_definition(const Resize& r, const Real& real) {
  Floats y;
  for (std::int64_t row = 0; row < r.batch * r.y.out; ++row) {
    for (std::int64_t ox = 0; ox < r.x.out; ++ox) {
      for (std::int64_t c = 0; c < r.channels; ++c) {
        double sum = 0.0;
        for (std::int64_t i = row % r.y.out * r.y.taps, j = 0; j < r.y.taps; ++j) {
          if (r.y.weight[i + j] == 0.0) continue;
          double line = 0.0;
          for (std::int64_t k = ox * r.x.taps, m = 0; m < r.x.taps; ++m) {
            if (r.x.weight[k + m] == 0.0) continue;
            const std::int64_t iy = row / r.y.out * r.y.in + r.y.at[i + j];
            const double product = r.x.weight[k + m] * real(size((iy * r.x.in + r.x.at[k + m]) * r.channels + c));
            line = line + product;
          }
          const double product = r.y.weight[i + j] * line;
          sum = sum + product;
        }
        y.push_back(static_cast<float>(sum));
      }
    }
  }
  return y;
}

TEST(Resize, EveryRowMatchesOnRandomTables) {
  Random random(test::test_seed(), "resize");
  const int cases = ctk::test::cases(10000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const Axis rows = random_axis(random), columns = random_axis(random);
    const Resize r{pick(random, 1, 2), pick(random, 1, 19), rows.view(), columns.view()};
    const std::size_t count = size(r.batch * rows.in * columns.in * r.channels);
    const Codes codes = test::random_codes(random, count);
    const Floats floats = test::random_floats(random, count);
    const ResizeCodes rule{static_cast<float>(0.01 + random.uniform()), static_cast<float>(0.01 + random.uniform()),
                           static_cast<std::uint8_t>(random.below(256)), static_cast<std::uint8_t>(random.below(256))};
    const Floats expected = by_definition(r, [&](std::size_t at) { return static_cast<double>(floats[at]); });
    Codes expected_codes;
    for (float value : by_definition(r, [&](std::size_t at) {
           return static_cast<double>(static_cast<float>(codes[at] - rule.in_zero) * rule.in_scale);
         })) {
      const double steps = static_cast<double>(value / rule.out_scale);
      const double code = std::fmin(std::fmax(std::nearbyint(steps) + rule.zero_point, 0.0), 255.0);
      expected_codes.push_back(static_cast<std::uint8_t>(code));
    }
    const Codes moved_codes = moved(resize_scalar, r, codes);
    const Floats moved_floats = moved(resize_scalar, r, floats);
    test::for_each_row(resize_rows(), [&](const ResizeRow& row) {
      const Floats found = blended(row, r, floats);
      for (std::size_t at = 0; at < found.size(); ++at)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(found[at]), std::bit_cast<std::uint32_t>(expected[at])) << at;
      ASSERT_EQ(blended(row, r, rule, codes), expected_codes);
      if (row.isa == Isa::scalar) return;  // MovesPixelsOfEverySize holds it to the definition
      ASSERT_EQ(moved(row, r, codes), moved_codes);
      ASSERT_EQ(moved(row, r, floats), moved_floats);
    });
  }
}

}  // namespace
}  // namespace ctk::kernels
