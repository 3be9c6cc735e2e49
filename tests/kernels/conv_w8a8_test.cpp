#include "kernels/conv_w8a8/conv_w8a8.h"

#include <gtest/gtest.h>

#include "core/parallel.h"
#include "kernels/gemm_w4a8/gemm_w4a8.h"
#include "tests/kernels/integer_convolution.h"
#include "tests/kernels/integer_rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels::test {
namespace {

std::vector<float> computed(const GemmIntRow& row, const ConvCase& c) {
  const ConvShape& s = c.shape;
  Buffer packed(conv_int_packed_bytes(row, s)), scratch(conv_int_scratch_bytes(row, s, threads()));
  conv_int_pack(row, s, c.w.data(), packed.data());
  const std::size_t count = static_cast<std::size_t>(s.pixels() * s.out_channels);
  auto y = run_into_output(c.epilogue, count, [&](const EpilogueInt& e, void* out) {
    conv_int(row, s, packed.data(), c.x.data(), c.zero_point, e, out, scratch.data());
  });
  EXPECT_TRUE(packed.guard_is_whole() && scratch.guard_is_whole());
  return y;
}

ConvCase random_case(Random& random, int low, int high) {
  for (;;) {
    ConvCase c;
    ConvShape& s = c.shape;
    s.batch = uniform(random, 1, 2);
    fill_geometry(s, random);
    c.zero_point = static_cast<std::uint8_t>(random());
    if (complete(c, random, uniform(random, 0, 2), uniform(random, 0, 2), low, high)) return c;
  }
}

void agree(std::span<const GemmIntRow> rows, int low, int high) {
  const unsigned seed = 20240229;
  Random random(seed);
  const int cases = ctk::test::cases(1000);
  for (int i = 0; i < cases; ++i) {
    const ConvCase c = random_case(random, low, high);
    const std::vector<float> want = expected(c);
    set_threads(i % 16 == 0 ? uniform(random, 2, 4) : 1);
    for_each_gemm_row(rows, [&](const GemmIntRow& row, const std::string& name) {
      ASSERT_EQ(computed(row, c), want) << name << ", seed " << seed << ", case " << i << ": " << text(c.shape);
    });
    if (testing::Test::HasFatalFailure()) break;
  }
  set_threads(1);
}

TEST(ConvW8A8, EqualsTheDirectLoopsOnRandomShapes) {
  agree(gemm_w8a8_rows(), -128, 127);
}
TEST(ConvW8A8, EqualsTheDirectLoopsWithNarrowWeights) {
  agree(gemm_w4a8_rows(), -8, 7);
}

// Shapes of real layers: more than one strip, both ways to split over threads, long K, all paths of the driver.
struct Layer {
  const char* what;
  std::int64_t batch, height, width, in, out, kernel, stride, groups;
};
constexpr Layer kLayers[] = {
    {"stem", 1, 32, 32, 3, 16, 3, 1, 1},
    {"first stage", 1, 32, 32, 16, 16, 3, 1, 1},
    {"downsampling", 2, 16, 16, 16, 32, 3, 2, 1},
    {"shortcut", 1, 16, 16, 32, 64, 1, 2, 1},
    {"last stage", 1, 8, 8, 64, 64, 3, 1, 1},
    {"few pixels, many channels", 1, 4, 4, 64, 256, 3, 1, 1},
    {"expansion", 1, 14, 14, 24, 144, 1, 1, 1},
    {"grouped", 1, 10, 10, 32, 32, 3, 1, 4},
    {"long row", 1, 1, 500, 40, 24, 3, 1, 1},
    {"deep pixels", 1, 3, 5, 512, 33, 3, 1, 1},
    {"one wide pixel", 1, 1, 1, 1280, 100, 1, 1, 1},
};

TEST(ConvW8A8, EqualsTheDirectLoopsOnLayersOfRealNetworks) {
  Random random(11);
  for (const Layer& layer : kLayers) {
    ConvCase c;
    c.shape.batch = layer.batch;
    c.shape.in_height = layer.height;
    c.shape.in_width = layer.width;
    c.shape.in_channels = layer.in;
    c.shape.out_channels = layer.out;
    c.shape.kernel_height = layer.height == 1 ? 1 : layer.kernel;
    c.shape.kernel_width = layer.kernel;
    c.shape.stride_height = c.shape.stride_width = layer.stride;
    c.shape.pad_top = layer.height == 1 ? 0 : layer.kernel / 2;
    c.shape.pad_left = layer.kernel / 2;
    c.shape.groups = layer.groups;
    c.zero_point = 7;
    ASSERT_TRUE(complete(c, random, c.shape.pad_top, c.shape.pad_left, -128, 127));
    const std::vector<float> want = expected(c);
    for (int threads : {1, 2, 4}) {
      set_threads(threads);
      for_each_gemm_row(gemm_w8a8_rows(), [&](const GemmIntRow& row, const std::string& name) {
        EXPECT_EQ(computed(row, c), want) << name << ", " << layer.what << ", " << threads << " threads";
      });
    }
  }
  set_threads(1);
}

// 3x3 convolutions of stride 1 may be computed with fewer multiplications (kernels/winograd_w8a8): odd sizes, channels
// that fill no vector, every padding, and weights and codes at their ends, where 16 bits are nearest to overflow.
TEST(ConvW8A8, EqualsTheDirectLoopsOnThreeByThreeWindows) {
  const unsigned seed = 33;
  Random random(seed);
  for (int i = 0; i < 400; ++i) {
    ConvCase c;
    ConvShape& s = c.shape;
    s.batch = uniform(random, 1, 2);
    s.in_height = uniform(random, 3, 20);
    s.in_width = uniform(random, 3, 20);
    s.in_channels = uniform(random, 8, 40);
    s.out_channels = uniform(random, 1, 40);
    s.kernel_height = s.kernel_width = 3;
    s.pad_top = uniform(random, 0, 2);
    s.pad_left = uniform(random, 0, 2);
    c.zero_point = static_cast<std::uint8_t>(random());
    ASSERT_TRUE(complete(c, random, uniform(random, 0, 2), uniform(random, 0, 2), -128, 127));
    if (i % 3 == 0) {
      for (auto& w : c.w) w = static_cast<std::int8_t>(random() % 2 == 0 ? -128 : 127);
      for (auto& x : c.x) x = static_cast<std::uint8_t>(random() % 2 == 0 ? 0 : 255);
    }
    const std::vector<float> want = expected(c);
    set_threads(i % 16 == 0 ? uniform(random, 2, 4) : 1);
    const auto check = [&](const GemmIntRow& row, const std::string& name) {
      ASSERT_EQ(computed(row, c), want) << name << ", seed " << seed << ", case " << i << ": " << text(c.shape);
    };
    for_each_native_row(gemm_w8a8_rows(), check);
    if (HasFatalFailure()) break;
  }
  set_threads(1);
}

// Rows with products of four bytes take the larger tiles only, for many channels and little waste at the borders; the
// weights of every third case are too large for them.
TEST(ConvW8A8, EqualsTheDirectLoopsOnImagesThatSuitLargeTiles) {
  const unsigned seed = 34;
  Random random(seed);
  for (int i = 0; i < 24; ++i) {
    ConvCase c;
    ConvShape& s = c.shape;
    s.batch = 1 + i % 2;
    s.in_height = std::vector<int>{16, 28, 15, 32}[random() % 4];
    s.in_width = std::vector<int>{16, 20, 31, 16}[random() % 4];
    s.in_channels = i % 3 == 0 ? 120 : std::vector<int>{64, 65, 80, 97}[random() % 4];
    s.out_channels = uniform(random, 1, 40);
    s.kernel_height = s.kernel_width = 3;
    s.pad_top = s.pad_left = 1;
    c.zero_point = static_cast<std::uint8_t>(random());
    ASSERT_TRUE(complete(c, random, 1, 1, -128, 127));
    if (i % 3 == 0) {
      for (auto& w : c.w) w = random() % 16 == 0 ? std::int8_t{-128} : std::int8_t{127};
      for (auto& x : c.x) x = static_cast<std::uint8_t>(random() % 16 == 0 ? 0 : 255);
    }
    const std::vector<float> want = expected(c);
    set_threads(i % 4 == 0 ? uniform(random, 2, 4) : 1);
    const auto check = [&](const GemmIntRow& row, const std::string& name) {
      ASSERT_EQ(computed(row, c), want) << name << ", seed " << seed << ", case " << i << ": " << text(c.shape);
    };
    for_each_native_row(gemm_w8a8_rows(), check);
    if (i % 8 < 2 && emulated_avx512vnni() != nullptr) check(*emulated_avx512vnni(), "emulated");
    if (HasFatalFailure()) break;
  }
  set_threads(1);
}

TEST(ConvW8A8, KeepsTheLargestSumsOfThreeByThreeWindowsExact) {
  // 1024 channels: 9 * 1024 * 255 * -128 = -300810240 where the window lies inside, as float exactly 2^17 * -2295.
  ConvCase c;
  ConvShape& s = c.shape;
  s.in_height = s.in_width = 14;
  s.out_height = s.out_width = 12;
  s.in_channels = 1024;
  s.kernel_height = s.kernel_width = 3;
  c.x.assign(14 * 14 * 1024, 255);
  c.w.assign(9 * 1024, -128);
  c.epilogue.bias = {0};
  c.epilogue.multiplier = {1.0f};
  c.epilogue.value.to_float = true;
  c.epilogue.value.low_f = -1e9f;
  for_each_native_row(gemm_w8a8_rows(), [&](const GemmIntRow& row, const std::string& name) {
    EXPECT_EQ(computed(row, c), std::vector<float>(144, -300810240.0f)) << name;
  });
}

// Tiles of 4x4 outputs carry sums 64 times too large: of 255 * -128 they hold nine times 114 channels, since
// 64 * 9 * 114 * 255 * 128 = 2143272960 < 2^31, and no more. What does not fit takes another way to the same bits.
TEST(ConvW8A8, KeepsSumsExactOnBothSidesOfWhatFitsLargeTiles) {
  for (const std::int64_t channels : {113, 114, 115, 116, 117}) {
    for (const int weight : {-128, 127}) {
      ConvCase c;
      ConvShape& s = c.shape;
      s.in_height = s.in_width = 18;
      s.out_height = s.out_width = 16;
      s.in_channels = channels;
      s.kernel_height = s.kernel_width = 3;
      c.x.assign(static_cast<std::size_t>(18 * 18 * channels), 255);
      c.w.assign(static_cast<std::size_t>(9 * channels), static_cast<std::int8_t>(weight));
      c.epilogue.bias = {1};
      c.epilogue.multiplier = {1.0f};
      c.epilogue.value.to_float = true;
      c.epilogue.value.low_f = -1e9f;
      c.epilogue.value.high_f = 1e9f;
      const float want = static_cast<float>(9 * channels * 255 * weight + 1);
      for_each_native_row(gemm_w8a8_rows(), [&](const GemmIntRow& row, const std::string& name) {
        EXPECT_EQ(computed(row, c), std::vector<float>(256, want)) << name << ", " << channels << " of " << weight;
      });
    }
  }
}

// The inputs that drive each of the 36 transformed inputs and weights to its end: 255 where the transform adds.
TEST(ConvW8A8, KeepsTheLargestTransformedInputsAndWeightsExact) {
  constexpr int inputs[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
  constexpr int weights[6][3] = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4}, {1, 2, 4}, {1, -2, 4}, {0, 0, 3}};
  Random random(1);
  for (int place = 0; place < 72; ++place) {
    const int u = place / 2 / 6, v = place / 2 % 6, sign = place % 2 == 0 ? 1 : -1;
    ConvCase c;
    ConvShape& s = c.shape;
    s.in_height = s.in_width = 18;
    s.in_channels = 16;
    s.out_channels = 17;
    s.kernel_height = s.kernel_width = 3;
    ASSERT_TRUE(complete(c, random, 0, 0, -128, 127));
    for (int at = 0; at < 18 * 18 * 16; ++at) {
      const int y = at / (18 * 16), x = at / 16 % 18;
      const bool adds = y < 6 && x < 6 && sign * inputs[u][y] * inputs[v][x] > 0;
      c.x[static_cast<std::size_t>(at)] = adds ? 255 : 0;
    }
    for (int at = 0; at < 17 * 16 * 9; ++at) {
      const int product = weights[u][at / 3 % 3] * weights[v][at % 3];
      c.w[static_cast<std::size_t>(at)] = static_cast<std::int8_t>(product > 0 ? 127 : -128);
    }
    const std::vector<float> want = expected(c);
    for_each_native_row(gemm_w8a8_rows(), [&](const GemmIntRow& row, const std::string& name) {
      EXPECT_EQ(computed(row, c), want) << name << ", place " << place;
    });
  }
}

TEST(ConvW8A8, PadsWithTheInputZeroPointSoThatPaddingMeansZero) {
  // 1x1 input of code 10, zero point 4, 3x3 weights all 1, one pixel of padding: eight taps read 4.
  // Sum 8 * 4 + 10 = 42; bias -4 * 9 = -36 takes the zero point out: 6 = 10 - 4.
  ConvCase c;
  c.shape.kernel_height = c.shape.kernel_width = 3;
  c.shape.pad_top = c.shape.pad_left = 1;
  c.zero_point = 4;
  c.x = {10};
  c.w.assign(9, 1);
  c.epilogue.bias = {-36};
  c.epilogue.multiplier = {1.0f};
  for_each_gemm_row(gemm_w8a8_rows(), [&](const GemmIntRow& row, const std::string& name) {
    EXPECT_EQ(computed(row, c), std::vector<float>{6.0f}) << name;
  });
}

}  // namespace
}  // namespace ctk::kernels::test
