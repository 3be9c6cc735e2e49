#include "kernels/depthwise_w8a8/depthwise_w8a8.h"

#include <gtest/gtest.h>

#include "core/parallel.h"
#include "tests/kernels/integer_convolution.h"
#include "tests/kernels/integer_rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels::test {
namespace {

std::vector<float> computed(const DepthwiseIntRow& row, const ConvCase& c) {
  const ConvShape& s = c.shape;
  Buffer packed(depthwise_int_packed_bytes(row, s)), scratch(depthwise_int_scratch_bytes(row, s, threads()));
  depthwise_int_pack(row, s, c.w.data(), packed.data());
  const std::size_t count = static_cast<std::size_t>(s.pixels() * s.out_channels);
  auto y = run_into_output(c.epilogue, count, [&](const EpilogueInt& e, void* out) {
    depthwise_int(row, s, packed.data(), c.x.data(), c.zero_point, e, out, scratch.data());
  });
  EXPECT_TRUE(packed.guard_is_whole() && scratch.guard_is_whole());
  return y;
}

ConvCase random_case(Random& random) {
  for (;;) {
    ConvCase c;
    ConvShape& s = c.shape;
    s.batch = uniform(random, 1, 2);
    s.in_height = uniform(random, 1, 9);
    s.in_width = uniform(random, 1, 11);
    s.groups = s.in_channels = s.out_channels = uniform(random, 1, 50);
    s.kernel_height = uniform(random, 1, 5);
    s.kernel_width = uniform(random, 1, 5);
    s.stride_height = uniform(random, 1, 3);
    s.stride_width = uniform(random, 1, 3);
    s.dilation_height = uniform(random, 1, 2);
    s.dilation_width = uniform(random, 1, 2);
    s.is_transposed = uniform(random, 0, 4) == 0;
    s.pad_top = uniform(random, 0, 3);
    s.pad_left = uniform(random, 0, 3);
    c.zero_point = static_cast<std::uint8_t>(random());
    if (complete(c, random, uniform(random, 0, 3), uniform(random, 0, 3), -128, 127)) return c;
  }
}

TEST(DepthwiseW8A8, EqualsTheDirectLoopsOnRandomShapes) {
  const unsigned seed = 5;
  Random random(seed);
  const int cases = ctk::test::cases(700);
  for (int i = 0; i < cases; ++i) {
    const ConvCase c = random_case(random);
    const std::vector<float> want = expected(c);
    set_threads(i % 16 == 0 ? uniform(random, 2, 4) : 1);
    for_each_depthwise_row([&](const DepthwiseIntRow& row, const std::string& name) {
      ASSERT_EQ(computed(row, c), want) << name << ", seed " << seed << ", case " << i << ": " << text(c.shape);
    });
    if (testing::Test::HasFatalFailure()) break;
  }
  set_threads(1);
}

// 3x3 windows have code of their own in rows: every width around a step, whole and broken blocks of 16 to 64
// channels, outputs with and without a clamp to apply.
TEST(DepthwiseW8A8, EqualsTheDirectLoopsOn3x3Windows) {
  const unsigned seed = 11;
  Random random(seed);
  for (int i = 0; i < 400; ++i) {
    ConvCase c;
    ConvShape& s = c.shape;
    s.in_height = uniform(random, 1, 6);
    s.in_width = 1 + i % 19;
    s.groups = s.in_channels = s.out_channels = std::vector<int>{15, 16, 17, 32, 48, 64, 80, 176}[random() % 8];
    s.kernel_height = s.kernel_width = 3;
    s.stride_height = s.stride_width = 1 + i / 5 % 2;
    s.pad_top = s.pad_left = uniform(random, 0, 1);
    c.zero_point = static_cast<std::uint8_t>(255 * (i % 2));
    if (!complete(c, random, uniform(random, 0, 1), uniform(random, 0, 2), -128, 127)) continue;
    if (i % 3 == 0) {
      c.epilogue.value.zero_point = c.epilogue.value.low = 0;
      c.epilogue.value.high = 255;
    }
    // Beyond 1 and far beyond int32: clamped while they are still floats.
    if (i % 4 == 0) c.epilogue.multiplier.back() = 1.0f;
    if (i % 8 == 0) c.epilogue.multiplier.back() = 1e9f;
    const std::vector<float> want = expected(c);
    for_each_depthwise_row([&](const DepthwiseIntRow& row, const std::string& name) {
      ASSERT_EQ(computed(row, c), want) << name << ", seed " << seed << ", case " << i << ": " << text(s);
    });
    if (testing::Test::HasFatalFailure()) break;
  }
}

TEST(DepthwiseW8A8, KeepsExtremeProductsExact) {
  // Nine taps of 255 * 127: 9 * 32385 = 291465, beyond 16 bits; as float with multiplier 1.
  for (std::int64_t channels = 1; channels <= 33; ++channels) {
    ConvCase c;
    c.shape.groups = c.shape.in_channels = c.shape.out_channels = channels;
    c.shape.in_height = c.shape.in_width = c.shape.kernel_height = c.shape.kernel_width = 3;
    const std::size_t n = static_cast<std::size_t>(channels);
    c.x.assign(9 * n, 255);
    c.w.assign(9 * n, 127);
    c.epilogue.bias.assign(n, 0);
    c.epilogue.multiplier.assign(n, 1.0f);
    c.epilogue.value.to_float = true;
    c.epilogue.value.low_f = -1e9f;
    c.epilogue.value.high_f = 1e9f;
    for_each_depthwise_row([&](const DepthwiseIntRow& row, const std::string& name) {
      EXPECT_EQ(computed(row, c), std::vector<float>(n, 291465.0f)) << name << ", " << channels << " channels";
    });
  }
}

TEST(DepthwiseW8A8, GivesTheSameCodesForAnyNumberOfThreads) {
  Random random(3);
  ConvCase c;
  ConvShape& s = c.shape;
  s.batch = 2;
  s.groups = s.in_channels = s.out_channels = 40;
  s.in_height = s.in_width = 13;
  s.kernel_height = s.kernel_width = 3;
  s.stride_height = s.stride_width = 2;
  s.pad_top = s.pad_left = 1;
  ASSERT_TRUE(complete(c, random, 1, 1, -128, 127));
  const std::vector<float> want = expected(c);
  for (int threads : {1, 2, 3, 4, 16}) {
    set_threads(threads);
    for_each_depthwise_row([&](const DepthwiseIntRow& row, const std::string& name) {
      EXPECT_EQ(computed(row, c), want) << name << ", " << threads << " threads";
    });
  }
  set_threads(1);
}

}  // namespace
}  // namespace ctk::kernels::test
