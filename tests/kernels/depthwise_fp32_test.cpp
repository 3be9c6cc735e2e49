#include "kernels/depthwise_fp32/depthwise_fp32.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/parallel.h"
#include "tests/support/conv_cases.h"
#include "tests/support/float_epilogue.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace {

using test::FencedArray;
using test::FloatOutput;
using test::Residual;

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

ConvShape depthwise(std::int64_t in, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                    std::int64_t pad) {
  return test::square(in, channels, channels, kernel, stride, pad, channels);
}

void check(const ConvShape& s, Random& random, bool has_bias = true, Residual residual = Residual::none,
           bool is_clamped = false) {
  SCOPED_TRACE(test::describe(s));
  const std::size_t channels = size(s.in_channels);
  FencedArray<float> x(test::random_floats(random, size(s.batch * s.in_height * s.in_width) * channels));
  FencedArray<float> w(test::random_floats(random, channels * size(s.kernel_height * s.kernel_width)));
  FloatOutput y(random, size(s.pixels()), channels, channels, has_bias, residual, is_clamped);
  const std::vector<float> expected = y.expected([&](std::size_t pixel, std::size_t c) {
    const std::int64_t p = static_cast<std::int64_t>(pixel);
    const std::int64_t ox = p % s.out_width, oy = p / s.out_width % s.out_height;
    const std::int64_t image = p / s.out_width / s.out_height;
    float sum = y.bias(c);
    const float* weight = w.data() + c * size(s.kernel_height * s.kernel_width);
    for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
      const std::int64_t iy =
          test::input_of(s.is_transposed, oy, ky, s.stride_height, s.dilation_height, s.pad_top, s.in_height);
      for (std::int64_t kx = 0; kx < s.kernel_width; ++kx) {
        const std::int64_t ix =
            test::input_of(s.is_transposed, ox, kx, s.stride_width, s.dilation_width, s.pad_left, s.in_width);
        const bool is_inside = iy >= 0 && ix >= 0;
        const std::size_t at = is_inside ? size((image * s.in_height + iy) * s.in_width + ix) * channels + c : 0;
        sum = std::fma(is_inside ? x.data()[at] : 0.0f, *weight++, sum);
      }
    }
    return sum;
  });
  test::for_each_row(depthwise_fp32_rows(), [&](const DepthwiseFloatRow& row) {
    FencedArray<char> packed((row.packed_bytes(s) + 63) / 64 * 64);
    row.pack(s, w.data(), packed.data());
    for (int team : {1, random.below(2) == 0 ? 2 : 4}) {
      y.reset();
      FencedArray<char> scratch(row.scratch_bytes(s) * size(team));
      set_threads(team);
      depthwise_float(row, s, packed.data(), x.data(), y.epilogue, y.data(), scratch.data());
      set_threads(1);
      ASSERT_EQ(y.values(), expected) << team << " threads";
    }
  });
}

TEST(DepthwiseFp32, FiltersEachChannelByItself) {
  // Two channels, 1x3 picture. Channel 0: [1 2 3] with [1 10 100], padding 1: 10+200, 1+20+300, 2+30.
  // Channel 1: [4 5 6] with [0 1 0]: itself.
  const float x[] = {1, 4, 2, 5, 3, 6}, w[] = {1, 10, 100, 0, 1, 0};
  ConvShape s;
  s.in_width = s.out_width = 3, s.in_channels = s.out_channels = s.groups = 2, s.kernel_width = 3, s.pad_left = 1;
  test::for_each_row(depthwise_fp32_rows(), [&](const DepthwiseFloatRow& row) {
    FencedArray<char> packed((row.packed_bytes(s) + 63) / 64 * 64), scratch(row.scratch_bytes(s));
    row.pack(s, w, packed.data());
    float y[6] = {};
    row.run(s, packed.data(), x, {nullptr, nullptr, 0, -1000.0f, 1000.0f}, y, 0, 1, scratch.data());
    EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{210, 4, 321, 5, 32, 6}));
  });
}

TEST(DepthwiseFp32, EveryRowMatchesAtEveryChannelCount) {
  Random random(test::test_seed(), "depthwise channels");
  for (std::int64_t channels : {1, 2, 7, 8, 9, 15, 16, 31, 32, 33, 40, 65}) {
    check(depthwise(9, channels, 3, 1, 1), random, true, Residual::none, true);
    check(depthwise(9, channels, 3, 2, 1), random, false, Residual::apart);
    check(depthwise(6, channels, 5, 1, 2), random, true, Residual::in_place);
  }
}

TEST(DepthwiseFp32, EveryRowMatchesAtEveryWidth) {
  Random random(test::test_seed(), "depthwise widths");
  for (std::int64_t in = 1; in <= 14; ++in) {
    check(depthwise(in, 9, 3, 1, 1), random);
    check(depthwise(in, 9, 3, 2, 1), random);
    if (in >= 3) check(depthwise(in, 9, 3, 2, 0), random);
  }
}

TEST(DepthwiseFp32, EveryRowMatchesOnRandomShapes) {
  Random random(test::test_seed(), "depthwise random");
  const int cases = ctk::test::cases(100);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    ConvShape s = test::random_window(random, true);
    s.in_channels = s.out_channels = s.groups = 1 + static_cast<std::int64_t>(random.below(40));
    check(s, random, random.below(2) == 0, static_cast<Residual>(random.below(3)), random.below(2) == 0);
  }
}

}  // namespace
}  // namespace ctk::kernels
