#include "kernels/conv_fp32/conv_fp32.h"

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
using test::square;

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// Sum of one output from the definition: taps row by row, channels innermost, padding read as 0.
float sum_of(const ConvShape& s, const float* x, const float* w, float sum, std::size_t pixel, std::size_t output) {
  const std::int64_t p = static_cast<std::int64_t>(pixel), o = static_cast<std::int64_t>(output);
  const std::int64_t ox = p % s.out_width, oy = p / s.out_width % s.out_height, image = p / s.out_width / s.out_height;
  const std::int64_t channels = s.in_channels / s.groups, group = o / (s.out_channels / s.groups);
  for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
    const std::int64_t iy =
        test::input_of(s.is_transposed, oy, ky, s.stride_height, s.dilation_height, s.pad_top, s.in_height);
    for (std::int64_t kx = 0; kx < s.kernel_width; ++kx) {
      const std::int64_t ix =
          test::input_of(s.is_transposed, ox, kx, s.stride_width, s.dilation_width, s.pad_left, s.in_width);
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t at = ((image * s.in_height + iy) * s.in_width + ix) * s.in_channels + group * channels + c;
        const std::int64_t weight = ((o * channels + c) * s.kernel_height + ky) * s.kernel_width + kx;
        sum = std::fma(iy >= 0 && ix >= 0 ? x[at] : 0.0f, w[weight], sum);
      }
    }
  }
  return sum;
}

void check(const ConvShape& s, Random& random, bool has_bias = true, Residual residual = Residual::none,
           bool is_clamped = false) {
  SCOPED_TRACE(test::describe(s));
  FencedArray<float> x(test::random_floats(random, size(s.batch * s.in_height * s.in_width * s.in_channels)));
  FencedArray<float> w(test::random_floats(random, size(s.out_channels * s.reduction())));
  const std::size_t outputs = size(s.out_channels);
  FloatOutput y(random, size(s.pixels()), outputs, outputs, has_bias, residual, is_clamped);
  const std::vector<float> expected =
      y.expected([&](std::size_t p, std::size_t o) { return sum_of(s, x.data(), w.data(), y.bias(o), p, o); });
  test::for_each_row(gemm_fp32_rows(), [&](const GemmFloatRow& row) {
    FencedArray<char> packed(conv_float_packed_bytes(row, s));
    conv_float_pack(row, s, w.data(), packed.data());
    for (int team : {1, random.below(2) == 0 ? 2 : 4}) {
      y.reset();
      FencedArray<char> scratch(conv_float_scratch_bytes(row, s, team));
      set_threads(team);
      conv_float(row, s, packed.data(), x.data(), y.epilogue, y.data(), scratch.data());
      set_threads(1);
      ASSERT_EQ(y.values(), expected) << team << " threads";
    }
  });
}

TEST(ConvFp32, GivesAHandWorkedPicture) {
  // 2x2 picture [1 2; 3 4], 3x3 kernel 1..9, padding 1. Top left: 5*1 + 6*2 + 8*3 + 9*4 = 77; top right:
  // 4*1 + 5*2 + 7*3 + 8*4 = 67; bottom left: 2*1 + 3*2 + 5*3 + 6*4 = 47; bottom right: 1*1 + 2*2 + 4*3 + 5*4 = 37.
  const float x[] = {1, 2, 3, 4}, w[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const ConvShape s = square(2, 1, 1, 3, 1, 1);
  test::for_each_row(gemm_fp32_rows(), [&](const GemmFloatRow& row) {
    FencedArray<char> packed(conv_float_packed_bytes(row, s)), scratch(conv_float_scratch_bytes(row, s, 1));
    conv_float_pack(row, s, w, packed.data());
    float y[4] = {};
    conv_float(row, s, packed.data(), x, {nullptr, nullptr, 0, -1000.0f, 1000.0f}, y, scratch.data());
    EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{77, 67, 47, 37}));
  });
}

TEST(ConvFp32, TransposedSpreadsEachInputOverItsOutputs) {
  // 1-D, input [1 2], kernel [10 20 30], stride 2: 1 gives 10 20 30 at 0..2, 2 gives 20 40 60 at 2..4.
  const float x[] = {1, 2}, w[] = {10, 20, 30};
  ConvShape s;
  s.in_width = 2, s.kernel_width = 3, s.stride_width = 2, s.is_transposed = true, s.out_width = 5;
  test::for_each_row(gemm_fp32_rows(), [&](const GemmFloatRow& row) {
    FencedArray<char> packed(conv_float_packed_bytes(row, s)), scratch(conv_float_scratch_bytes(row, s, 1));
    conv_float_pack(row, s, w, packed.data());
    float y[5] = {};
    conv_float(row, s, packed.data(), x, {nullptr, nullptr, 0, -1000.0f, 1000.0f}, y, scratch.data());
    EXPECT_EQ(std::vector<float>(y, y + 5), (std::vector<float>{10, 20, 50, 40, 60}));
  });
}

TEST(ConvFp32, EveryRowMatchesOnLayersOfRealNetworks) {
  Random random(test::test_seed(), "conv layers");
  check(square(32, 3, 16, 3, 1, 1), random, true, Residual::none, true);
  check(square(16, 16, 16, 3, 1, 1), random, true, Residual::apart, true);
  check(square(16, 16, 32, 3, 2, 1), random);
  check(square(8, 64, 64, 3, 1, 1), random, true, Residual::in_place, true);
  check(square(16, 16, 32, 1, 2, 0), random);
  check(square(14, 24, 96, 1, 1, 0), random, false, Residual::in_place);
  check(square(30, 3, 8, 7, 2, 3), random);
  check(square(13, 64, 10, 3, 1, 1, 1, 2), random);  // dilated
  check(square(10, 32, 32, 3, 1, 1, 4), random);     // groups
  check(square(10, 12, 12, 3, 1, 1, 4), random);     // groups of few channels
  check(square(4, 8, 8, 4, 1, 0, 1, 1, 5), random);  // one pixel an image
}

TEST(ConvFp32, EveryRowMatchesAcrossBlocksOfPixels) {
  Random random(test::test_seed(), "conv blocks");
  check(square(37, 5, 9, 3, 1, 1), random);           // blocks of several rows
  check(square(37, 5, 9, 3, 1, 0), random);           // the same, read in place
  check(square(20, 6, 5, 3, 1, 1, 1, 1, 3), random);  // several images
  check(square(21, 9, 5, 5, 3, 2), random);           // strides that skip
  ConvShape wide = square(3, 4, 6, 3, 1, 1);
  wide.in_width = wide.out_width = 301;
  check(wide, random);  // rows longer than a block
  wide.pad_left = 7;
  test::fit_output(wide, 1, 5);
  check(wide, random);  // windows wholly in the padding
  ConvShape line;       // 1-D
  line.in_width = 500, line.in_channels = 8, line.out_channels = 12;
  line.kernel_width = 9, line.stride_width = 2, line.pad_left = 4;
  test::fit_output(line, 0, 4);
  check(line, random);
  ConvShape tall = square(9, 7, 6, 3, 2, 2, 1, 1);
  tall.dilation_height = 3;
  test::fit_output(tall, 2, 2);
  check(tall, random);
}

TEST(ConvFp32, EveryRowMatchesOnRandomShapes) {
  Random random(test::test_seed(), "conv random");
  const int cases = ctk::test::cases(150);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    ConvShape s = test::random_window(random, true);
    s.groups = random.below(3) == 0 ? 1 + static_cast<std::int64_t>(random.below(3)) : 1;
    s.in_channels = s.groups * (1 + static_cast<std::int64_t>(random.below(12)));
    s.out_channels = s.groups * (1 + static_cast<std::int64_t>(random.below(20)));
    check(s, random, random.below(2) == 0, static_cast<Residual>(random.below(3)), random.below(2) == 0);
  }
}

}  // namespace
}  // namespace ctk::kernels
