#include "kernels/gemm_wg/gemm_wg.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "core/parallel.h"
#include "tests/support/float_epilogue.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace test {
// emulated_gemm_wg_x86_*_test.cpp; null where the emulation's headers (libsimde-dev) are missing, and on ARM.
const GemmWgRow* emulated_wg_avxvnni();
const GemmWgRow* emulated_wg_avx512vnni();
}  // namespace test

namespace {

using ctk::test::FencedArray;
using ctk::test::FloatOutput;
using ctk::test::Residual;

// Calls body(row) for each row this host can run, then for those emulated instruction by instruction.
template <class Body>
void for_each_row(Body&& body) {
  ctk::test::for_each_row(gemm_wg_rows(), body);
  for (const GemmWgRow* row : {test::emulated_wg_avxvnni(), test::emulated_wg_avx512vnni()}) {
    if (row == nullptr) continue;
    SCOPED_TRACE(std::string(row->name) + " (emulated)");
    body(*row);
  }
}

// A weight matrix with everything pack() reads. codes: one a byte, 0..15.
struct Weights {
  WgShape shape;
  bool is_signed = false;
  std::size_t row_codes = 0;
  std::vector<std::uint8_t> codes, zero_points;
  std::vector<std::uint16_t> scales;

  // The number a code stands for, worked out in double.
  double value(std::size_t n, std::size_t k) const {
    const std::size_t group = n * shape.groups() + k / shape.group();
    const int zero_point = shape.is_affine ? zero_points[group] : 8;
    return static_cast<double>(half_to_float(scales[group])) * (codes[n * shape.k + k] - zero_point);
  }
  std::vector<std::uint8_t> nibbles() const {
    std::vector<std::uint8_t> out((shape.n * row_codes + 1) / 2, 0);
    for (std::size_t n = 0; n < shape.n; ++n) {
      for (std::size_t k = 0; k < shape.k; ++k) {
        const std::size_t at = n * row_codes + k;
        const unsigned code = is_signed ? codes[n * shape.k + k] ^ 8u : codes[n * shape.k + k];
        out[at / 2] = static_cast<std::uint8_t>(out[at / 2] | code << (at % 2 * 4));
      }
    }
    return out;
  }
};

Weights random_weights(Random& random, const WgShape& shape) {
  Weights w;
  w.shape = shape;
  w.is_signed = !shape.is_affine && random.below(2) == 0;
  w.row_codes = shape.k + random.below(3);
  for (std::size_t i = 0; i < shape.n * shape.k; ++i) w.codes.push_back(static_cast<std::uint8_t>(random.below(16)));
  for (std::size_t i = 0; i < shape.n * shape.groups(); ++i) {
    w.scales.push_back(float_to_half(static_cast<float>(0.1 * random.normal())));
    if (shape.is_affine) w.zero_points.push_back(static_cast<std::uint8_t>(random.below(16)));
  }
  return w;
}

struct Options {
  std::size_t m = 1;
  int digits = 1;
  bool per_token = false, has_bias = false, is_clamped = false;
  Residual residual = Residual::none;
  std::size_t a_gap = 0, c_gap = 0;
};

// A product's inputs, each ending where its memory does. a: [m, k] with rows k + a_gap apart.
struct Inputs {
  Inputs(const Weights& w, const std::vector<float>& a)
      : codes(w.nibbles()), zero_points(w.zero_points), scales(w.scales), activations(a) {}
  FencedArray<std::uint8_t> codes, zero_points;
  FencedArray<std::uint16_t> scales;
  FencedArray<float> activations;
};

std::vector<float> computed(const GemmWgRow& row, const Weights& w, Inputs& in, const Options& o, FloatOutput& c) {
  const auto aligned = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
  FencedArray<char> packed(aligned(row.packed_bytes(w.shape)));
  FencedArray<char> scratch(gemm_wg_scratch_bytes(row, w.shape, o.digits, o.m));
  WgMatrix matrix;
  matrix.shape = w.shape;
  matrix.codes = in.codes.data();
  matrix.row_codes = w.row_codes;
  matrix.is_signed = w.is_signed;
  matrix.scales = in.scales.data();
  matrix.zero_points = w.shape.is_affine ? in.zero_points.data() : nullptr;
  pack_wg(row, matrix, packed.data());
  GemmWg g;
  g.m = o.m;
  g.shape = w.shape;
  g.a = in.activations.data();
  g.a_stride = w.shape.k + o.a_gap;
  g.digits = o.digits;
  g.per_token = o.per_token;
  g.packed = packed.data();
  g.epilogue = c.epilogue;
  c.reset();
  g.c = c.data();
  g.c_stride = w.shape.n + o.c_gap;
  gemm_wg(row, g, scratch.data());
  return c.values();
}

std::vector<float> computed(const GemmWgRow& row, const Weights& w, const std::vector<float>& a, const Options& o,
                            FloatOutput& c) {
  Inputs in(w, a);
  return computed(row, w, in, o, c);
}

// NaN equals NaN here, and -0 is not 0.
void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(want[i]))
          << "element " << i << ": " << got[i] << ", expected " << want[i];
    }
  }
}

// Every row against the scalar one. With several threads on request: starting them takes longer than small products.
void compare_rows(Random& random, const Weights& w, const std::vector<float>& a, const Options& o,
                  std::vector<int> teams = {1, 2, 4}) {
  SCOPED_TRACE("m " + std::to_string(o.m) + " n " + std::to_string(w.shape.n) + " k " + std::to_string(w.shape.k) +
               " group " + std::to_string(w.shape.group_size) + " affine " + std::to_string(w.shape.is_affine) +
               " digits " + std::to_string(o.digits) + " per token " + std::to_string(o.per_token));
  FloatOutput c(random, o.m, w.shape.n, w.shape.n + o.c_gap, o.has_bias, o.residual, o.is_clamped);
  Inputs in(w, a);
  const std::vector<float> want = computed(gemm_wg_rows().front(), w, in, o, c);
  for_each_row([&](const GemmWgRow& row) {
    for (int team : teams) {
      if (team == 1 && row.isa == Isa::scalar) continue;
      set_threads(team);
      const std::vector<float> got = computed(row, w, in, o, c);
      set_threads(1);
      expect_same_bits(got, want);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

std::vector<float> random_activations(Random& random, std::size_t m, std::size_t k, std::size_t gap) {
  std::vector<float> a(m == 0 ? 0 : (m - 1) * (k + gap) + k);
  for (float& x : a) x = static_cast<float>(random.normal() * std::exp(2 * random.normal()));
  return a;
}

void check_random(Random& random, Options o, WgShape shape, std::vector<int> teams) {
  o.per_token = random.below(2) == 0;
  o.has_bias = random.below(2) == 0;
  o.is_clamped = random.below(4) == 0;
  o.residual = static_cast<Residual>(random.below(3));
  o.a_gap = random.below(2) * random.below(5);
  o.c_gap = random.below(2) * random.below(5);
  compare_rows(random, random_weights(random, shape), random_activations(random, o.m, shape.k, o.a_gap), o,
               std::move(teams));
}

constexpr std::size_t kGroupSizes[] = {0, 16, 32, 48, 64, 128};

TEST(GemmWg, RowsEqualTheReferenceOnRandomShapes) {
  Random random(ctk::test::test_seed(), "gemm_wg");
  for (int i = 0; i < 10000 && !HasFatalFailure(); ++i) {
    Options o;
    o.m = 1 + random.below(9);
    o.digits = 1 + static_cast<int>(random.below(3));
    check_random(random, o,
                 {1 + random.below(40), 1 + random.below(random.below(8) == 0 ? 300 : 70),
                  kGroupSizes[random.below(std::size(kGroupSizes))], random.below(2) == 0},
                 i % 200 == 0 ? std::vector{2, 4} : std::vector{1});
  }
}

TEST(GemmWg, RowsEqualTheReferenceAtEveryTailOfATile) {
  Random random(ctk::test::test_seed(), "gemm_wg tails");
  for (std::size_t n : {1, 7, 8, 9, 15, 16, 17, 33}) {
    for (std::size_t k : {1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129, 131}) {
      for (std::size_t m : {1, 2, 3, 4, 5, 6, 7, 13}) {
        Options o;
        o.m = m;
        o.digits = 1 + static_cast<int>(random.below(3));
        check_random(random, o, {n, k, kGroupSizes[random.below(std::size(kGroupSizes))], random.below(2) == 0},
                     k == 131 ? std::vector{2} : std::vector{1});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(GemmWg, RowsEqualTheReferenceOnLongAndManyRows) {
  Random random(ctk::test::test_seed(), "gemm_wg long");
  const std::size_t shapes[][4] = {{1, 40, 4096, 128}, {3, 17, 5000, 0},  {130, 24, 200, 32}, {70, 50, 1040, 64},
                                   {9, 33, 2050, 128}, {200, 16, 16, 16}, {25, 20, 3000, 0},  {64, 18, 700, 512}};
  for (const auto& s : shapes) {
    for (int digits = 1; digits <= 3; ++digits) {
      Options o;
      o.m = s[0];
      o.digits = digits;
      check_random(random, o, {s[1], s[2], s[3], random.below(2) == 0}, {1, 2, 4});
      if (HasFatalFailure()) return;
    }
  }
}

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
    const WgShape shape{1 + random.below(20), 1 + random.below(500), kGroupSizes[random.below(std::size(kGroupSizes))],
                        random.below(2) == 0};
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
      const Weights w = random_weights(random, {18, 70, 32, true});
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

TEST(GemmWg, StoresFourBitsAWeightAndTheScales) {
  for_each_row([](const GemmWgRow& row) {
    if (row.isa == Isa::scalar) return;  // the reference unpacks
    // 4096 x 4096, groups of 128: 0.5 + 2 / 128 bytes a weight; affine: 0.5 + 3 / 128.
    EXPECT_EQ(row.packed_bytes({4096, 4096, 128, false}), 8650752u);
    EXPECT_EQ(row.packed_bytes({4096, 4096, 128, true}), 8781824u);
    EXPECT_EQ(row.packed_bytes({4096, 4096, 32, false}), 9437184u);
  });
}

TEST(GemmWg, SaysWhichGroupsItSupports) {
  for (std::size_t group : {0, 16, 32, 48, 64, 128, 1024})
    EXPECT_TRUE((WgShape{8, 100, group}.is_supported())) << group;
  EXPECT_TRUE((WgShape{8, 100, 100}.is_supported()));  // one group, whatever its length
  EXPECT_TRUE((WgShape{8, 1 << 20, 0}.is_supported()));
  for (std::size_t group : {1, 8, 20, 99}) EXPECT_FALSE((WgShape{8, 100, group}.is_supported())) << group;
  EXPECT_FALSE((WgShape{8, (1 << 20) + 1, 32}.is_supported()));
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
