// What gemm_wg computes, in numbers worked out beside it.
#include <algorithm>
#include <limits>

#include "tests/kernels/gemm_wg_cases.h"

namespace ctk::kernels {
namespace {

using namespace test;

// One channel, one row: what a product of weights with equal code and activations with equal value gives.
float product(const GemmWgRow& row, WgShape shape, int code, int zero_point, float scale, float activation,
              int digits) {
  Random random(1);
  Weights w = random_weights(random, shape);
  w.codes.assign(shape.n * shape.k, static_cast<std::uint8_t>(code));
  w.scales.assign(shape.n * shape.groups(), float_to_half(scale));
  if (shape.is_affine) w.zero_points.assign(shape.n * shape.groups(), static_cast<std::uint8_t>(zero_point));
  Options o;
  o.digits = digits;
  FloatOutput c(random, 1, shape.n, shape.n, false, Residual::none, false);
  return computed(row, w, std::vector<float>(shape.k, activation), o, c)[0];
}

TEST(GemmWg, KeepsExtremeCodesExact) {
  for_each_row([](const GemmWgRow& row) {
    // Affine, code 15, zero point 0, activations at the end of their range: q = +-127 each, scale 2 / 127 a step.
    // dot = 128 * 127 * 15 = 243840; times float(2 / 127) * 0.5 = 1920 within two roundings.
    EXPECT_NEAR(product(row, {1, 128, 128, true}, 15, 0, 0.5f, 2.0f, 1), 1920.0f, 1e-3f);
    EXPECT_NEAR(product(row, {1, 128, 128, true}, 15, 0, 0.5f, -2.0f, 1), -1920.0f, 1e-3f);
    // Code 0, zero point 15: the same with the other sign.
    EXPECT_NEAR(product(row, {1, 128, 128, true}, 0, 15, 0.5f, 2.0f, 1), -1920.0f, 1e-3f);
    // Symmetric: codes 0 and 15 are -8 and 7. 128 * -8 * 0.5 * 2 = -1024; 128 * 7 * 0.5 * 2 = 896.
    EXPECT_NEAR(product(row, {1, 128, 32, false}, 0, 8, 0.5f, 2.0f, 1), -1024.0f, 1e-3f);
    EXPECT_NEAR(product(row, {1, 128, 32, false}, 15, 8, 0.5f, 2.0f, 1), 896.0f, 1e-3f);
    // The whole of k in one group, as far as the contract goes: 2^20 * 15 * 2 = 31457280.
    EXPECT_NEAR(product(row, {1, std::size_t{1} << 20, 0, true}, 15, 0, 1.0f, 2.0f, 1), 31457280.0f, 16.0f);
    EXPECT_NEAR(product(row, {1, std::size_t{1} << 20, 0, true}, 15, 0, 1.0f, -2.0f, 3), -31457280.0f, 16.0f);
  });
}

TEST(GemmWg, KeepsExtremeCodesOfEveryWidthExact) {
  for (int bits : kWidths) {
    SCOPED_TRACE(bits);
    const int most = (1 << bits) - 1;
    const std::size_t longest = std::size_t{1} << std::min(20, 24 - bits);
    for_each_row([&](const GemmWgRow& row) {
      // Affine, all 128 codes at the top, zero point 0, activations 2, scale 1: 128 * most * 2 within the roundings of
      // the step, 2 / 127. Codes 0 by the highest zero point: the same with the other sign.
      const float affine = static_cast<float>(256 * most);
      EXPECT_NEAR(product(row, {1, 128, 128, true, bits}, most, 0, 1.0f, 2.0f, 1), affine, 1e-6f * affine);
      EXPECT_NEAR(product(row, {1, 128, 128, true, bits}, 0, most, 1.0f, 2.0f, 2), -affine, 1e-6f * affine);
      EXPECT_NEAR(product(row, {1, 128, 32, true, bits}, most, 0, 1.0f, -2.0f, 3), -affine, 1e-6f * affine);
      // Symmetric, the code furthest down: 128 * -2^(bits-1) * 2.
      const float low = static_cast<float>(-256 * (1 << (bits - 1)));
      EXPECT_NEAR(product(row, {1, 128, 64, false, bits}, 0, 0, 1.0f, 2.0f, 1), low, -1e-6f * low);
      // One group as long as the contract allows.
      const float whole = static_cast<float>(longest) * 2.0f * static_cast<float>(most);
      EXPECT_NEAR(product(row, {1, longest, 0, true, bits}, most, 0, 1.0f, 2.0f, 1), whole, 1e-6f * whole);
      EXPECT_NEAR(product(row, {1, longest, 0, true, bits}, 0, most, 1.0f, 2.0f, 1), -whole, 1e-6f * whole);
    });
  }
}

TEST(GemmWg, KeepsLowDigitsAtTheirLeastExact) {
  // 127 * 256 = 32512 sets the step of two digits to 1; -32640 would be out of range, -128 is not: digits 0 and -128.
  // 15 of them by weights of 255 - 0: 15 * -128 * 255 + 32512 * 255 = 7800960, the sum of floats exact.
  for_each_row([](const GemmWgRow& row) {
    Random random(1);
    Weights w = random_weights(random, {1, 16, 16, true, 8});
    w.codes.assign(16, 255);
    w.zero_points.assign(1, 0);
    w.scales.assign(1, float_to_half(1.0f));
    Options o;
    o.digits = 2;
    std::vector<float> a(16, -128.0f);
    a[0] = 32512.0f;
    FloatOutput c(random, 1, 1, 1, false, Residual::none, false);
    EXPECT_EQ(computed(row, w, a, o, c)[0], 7800960.0f);
  });
}

TEST(GemmWg, RoundsOnceAGroupWhereAnInt32HoldsTheWholeSum) {
  // Activations are whole numbers with 32512 among them, scales 1: y = float32(bias + float32(dot)), dot exact in
  // double. Groups of 2^16 / 2^bits are the longest that are summed whole; eight rows and more go by the ways of many
  // lines.
  Random random(ctk::test::test_seed(), "gemm_wg whole sums");
  for (int bits : kWidths) {
    for (std::size_t m : {std::size_t{1}, std::size_t{3}, std::size_t{19}}) {
      const std::size_t k = std::size_t{1} << (16 - bits);
      const WgShape shape{17, k, 0, random.below(2) == 0, bits};
      ASSERT_TRUE(shape.sums_whole(2));
      ASSERT_FALSE(WgShape({17, k + 1, 0, false, bits}).sums_whole(2));
      Weights w = random_weights(random, shape);
      w.scales.assign(shape.n, float_to_half(1.0f));
      Options o;
      o.m = m;
      o.digits = 2;
      o.has_bias = true;
      std::vector<float> a(m * k);
      for (float& v : a) v = static_cast<float>(static_cast<int>(random.below(65025)) - 32512);
      for (std::size_t row = 0; row < m; ++row) a[row * k + random.below(k)] = row % 2 == 0 ? 32512.0f : -32512.0f;
      FloatOutput c(random, m, shape.n, shape.n, true, Residual::none, false);
      for_each_row([&](const GemmWgRow& row) {
        const std::vector<float> y = computed(row, w, a, o, c);
        for (std::size_t i = 0; i < y.size(); ++i) {
          double dot = 0;
          for (std::size_t j = 0; j < k; ++j) dot += w.value(i % shape.n, j) * a[i / shape.n * k + j];
          ASSERT_EQ(y[i], static_cast<float>(c.bias(i % shape.n) + static_cast<double>(static_cast<float>(dot))))
              << "element " << i << " of " << bits << " bits";
        }
      });
    }
  }
}

TEST(GemmWg, RoundsActivationsToNearestWithTiesToEven) {
  // Group of 16: 127 sets the step to 1; 0.5, 1.5, 2.5 and -2.5 become 0, 2, 2, -2. Weights 1 (code 9), scale 1.
  Random random(1);
  Weights w = random_weights(random, {1, 16, 16, false});
  w.codes.assign(16, 9);
  w.scales.assign(1, float_to_half(1.0f));
  Options o;
  const float group[16] = {127.0f, 0.5f, 1.5f, 2.5f, -2.5f};
  FloatOutput c(random, 1, 1, 1, false, Residual::none, false);
  for_each_row([&](const GemmWgRow& row) {
    EXPECT_EQ(computed(row, w, {group, group + 16}, o, c)[0], 127.0f + 0.0f + 2.0f + 2.0f - 2.0f);
  });
}

TEST(GemmWg, GivesActivationsOneStepAGroupOrOneAToken) {
  // Two groups of 16: 127 and then 1s. By groups the ones are exact; one step a token makes them round(1) = 1 of step
  // 1, too; 0.4 however is exact by groups and 0 by token.
  Random random(1);
  Weights w = random_weights(random, {1, 32, 16, false});
  w.codes.assign(32, 9);
  w.scales.assign(2, float_to_half(1.0f));
  std::vector<float> a(32, 0.0f);
  a[0] = 127.0f;
  std::fill(a.begin() + 16, a.end(), 0.4f);
  Options o;
  FloatOutput c(random, 1, 1, 1, false, Residual::none, false);
  for_each_row([&](const GemmWgRow& row) {
    o.per_token = false;
    EXPECT_NEAR(computed(row, w, a, o, c)[0], 127.0f + 16 * 0.4f, 1e-4f);
    o.per_token = true;
    EXPECT_EQ(computed(row, w, a, o, c)[0], 127.0f);
  });
}

TEST(GemmWg, StaysWithinTheStatedErrorOfTheDequantizedProduct) {
  Random random(ctk::test::test_seed(), "gemm_wg error");
  const double epsilon = std::numeric_limits<float>::epsilon();
  for (int i = 0; i < 300; ++i) {
    const WgShape shape = random_shape(random, 1 + random.below(20), 1 + random.below(500));
    const Weights w = random_weights(random, shape);
    Options o;
    o.m = 1 + random.below(7);
    o.digits = 1 + static_cast<int>(random.below(3));
    o.per_token = random.below(2) == 0;
    const std::vector<float> a = random_activations(random, o.m, shape.k, 0);
    FloatOutput c(random, o.m, shape.n, shape.n, true, Residual::none, false);
    const double relative_step = o.digits == 1 ? 0x1p-8 * 1.01 : o.digits == 2 ? 0x1p-15 * 1.01 : 0x1p-23;
    for_each_row([&](const GemmWgRow& row) {
      const std::vector<float> y = computed(row, w, a, o, c);
      for (std::size_t m = 0; m < o.m; ++m) {
        for (std::size_t n = 0; n < shape.n; ++n) {
          double sum = c.bias(n), weight_sum = 0, magnitude = std::fabs(sum), error = 0, token_top = 0;
          for (std::size_t k = 0; k < shape.k; ++k) token_top = std::fmax(token_top, std::fabs(a[m * shape.k + k]));
          for (std::size_t first = 0; first < shape.k; first += shape.group()) {
            double top = o.per_token ? token_top : 0;
            weight_sum = 0;
            for (std::size_t k = first; k < std::min(first + shape.group(), shape.k); ++k) {
              sum += w.value(n, k) * a[m * shape.k + k];
              magnitude += std::fabs(w.value(n, k) * a[m * shape.k + k]);
              weight_sum += std::fabs(w.value(n, k));
              top = std::fmax(top, std::fabs(a[m * shape.k + k]));
            }
            error += weight_sum * top * relative_step;
          }
          // Sums of groups are exact; each group and digit adds one rounding of what has come together so far.
          const double roundings = 4.0 + static_cast<double>(shape.groups()) * o.digits;
          ASSERT_NEAR(y[m * shape.n + n], sum, error + roundings * epsilon * (magnitude + error))
              << "case " << i << " digits " << o.digits;
        }
      }
    });
  }
}

TEST(GemmWg, MakesZerosOfZeroAndTinyGroupsAndNaNOfWhatIsNotFinite) {
  Random random(5);
  const float infinity = std::numeric_limits<float>::infinity();
  for (int digits = 1; digits <= 3; ++digits) {
    for (bool per_token : {false, true}) {
      const Weights w = random_weights(random, {18, 70, 32, true, kWidths[random.below(std::size(kWidths))]});
      Options o;
      o.m = 6;
      o.digits = digits;
      o.per_token = per_token;
      std::vector<float> a = random_activations(random, o.m, 70, 0);
      std::fill_n(a.begin(), 70, 0.0f);
      std::fill_n(a.begin() + 70, 70, 1e-35f);
      std::fill_n(a.begin() + 140, 70, std::numeric_limits<float>::max());
      a[3 * 70 + 69] = std::numeric_limits<float>::quiet_NaN();
      a[4 * 70 + 33] = -infinity;
      FloatOutput c(random, o.m, 18, 18, true, Residual::none, false);
      for_each_row([&](const GemmWgRow& row) {
        const std::vector<float> y = computed(row, w, a, o, c);
        for (std::size_t n = 0; n < 18; ++n) {
          EXPECT_EQ(y[n], c.bias(n));
          EXPECT_EQ(y[18 + n], c.bias(n));
          EXPECT_TRUE(std::isnan(y[3 * 18 + n]));
          EXPECT_TRUE(std::isnan(y[4 * 18 + n]));
          EXPECT_TRUE(std::isfinite(y[5 * 18 + n]));
        }
      });
      compare_rows(random, w, a, o);
    }
  }
}

TEST(GemmWg, StoresTheBitsOfAWeightAndTheScales) {
  for_each_row([](const GemmWgRow& row) {
    if (row.isa == Isa::scalar) return;  // the reference unpacks
    // 4096 x 4096, groups of 128: 0.5 + 2 / 128 bytes a weight; affine: 0.5 + 3 / 128.
    EXPECT_EQ(row.packed_bytes({4096, 4096, 128, false}), 8650752u);
    EXPECT_EQ(row.packed_bytes({4096, 4096, 128, true}), 8781824u);
    EXPECT_EQ(row.packed_bytes({4096, 4096, 32, false}), 9437184u);
    // 2^24 * bits / 8 + 2^20 of scales at groups of 32.
    EXPECT_EQ(row.packed_bytes({4096, 4096, 32, false, 2}), 5242880u);
    EXPECT_EQ(row.packed_bytes({4096, 4096, 32, false, 3}), 7340032u);
    EXPECT_EQ(row.packed_bytes({4096, 4096, 32, false, 5}), 11534336u);
    EXPECT_EQ(row.packed_bytes({4096, 4096, 32, false, 6}), 13631488u);
    EXPECT_EQ(row.packed_bytes({4096, 4096, 32, false, 8}), 17825792u);
  });
}

TEST(GemmWg, SaysWhichGroupsItSupports) {
  for (std::size_t group : {0, 16, 32, 48, 64, 128, 1024})
    EXPECT_TRUE((WgShape{8, 100, group}.is_supported())) << group;
  EXPECT_TRUE((WgShape{8, 100, 100}.is_supported()));  // one group, whatever its length
  EXPECT_TRUE((WgShape{8, 1 << 20, 0}.is_supported()));
  for (std::size_t group : {1, 8, 20, 99}) EXPECT_FALSE((WgShape{8, 100, group}.is_supported())) << group;
  EXPECT_FALSE((WgShape{8, (1 << 20) + 1, 32}.is_supported()));
  for (int bits : kWidths) EXPECT_TRUE((WgShape{8, 100, 32, false, bits}.is_supported())) << bits;
  for (int bits : {0, 1, 7, 9, 16}) EXPECT_FALSE((WgShape{8, 100, 32, false, bits}.is_supported())) << bits;
  EXPECT_TRUE((WgShape{8, 1 << 16, 0, true, 8}.is_supported()));
  EXPECT_FALSE((WgShape{8, (1 << 16) + 1, 0, true, 8}.is_supported()));
  EXPECT_TRUE((WgShape{8, 1 << 20, 128, true, 8}.is_supported()));
}

TEST(GemmWg, TakesEmptyProducts) {
  Random random(3);
  for (const WgShape& shape : {WgShape{5, 0, 32, false}, WgShape{5, 0, 0, true}}) {
    Options o;
    o.m = 2;
    compare_rows(random, random_weights(random, shape), {}, o);
  }
}

}  // namespace
}  // namespace ctk::kernels
