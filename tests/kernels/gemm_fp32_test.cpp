#include "kernels/gemm_fp32/gemm_fp32.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/parallel.h"
#include "tests/support/float_epilogue.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace {

using test::FencedArray;
using test::FloatOutput;
using test::Residual;

struct Problem {
  std::size_t m, n, k;
  std::size_t a_gap = 0, c_gap = 0;  // elements between one row's end and the next one's start
  std::size_t runs = 0;              // > 0: A as pointers to so many runs a row
  bool has_bias = true;
  Residual residual = Residual::none;
  bool is_clamped = false;
};

std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Runs every row on the problem with one and with more threads and compares with sums worked out one by one.
void check(const Problem& p, Random& random) {
  SCOPED_TRACE("m " + std::to_string(p.m) + " n " + std::to_string(p.n) + " k " + std::to_string(p.k) + " runs " +
               std::to_string(p.runs));
  const std::size_t a_stride = p.k + p.a_gap;
  FencedArray<float> a(test::random_floats(random, p.m == 0 ? 0 : (p.m - 1) * a_stride + p.k));
  FencedArray<float> w(test::random_floats(random, p.n * p.k));
  FloatOutput c(random, p.m, p.n, p.n + p.c_gap, p.has_bias, p.residual, p.is_clamped);
  // Runs are handed out in shuffled places, so that nothing but the pointers can say where they lie.
  const std::size_t length = p.runs > 0 ? p.k / p.runs : 0;
  std::vector<float> shuffled(p.m * p.k);
  std::vector<const float*> segments(p.m * p.runs);
  const auto places = random.permutation(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    float* place = shuffled.data() + places[i] * length;
    std::copy_n(a.data() + i / p.runs * a_stride + i % p.runs * length, length, place);
    segments[i] = place;
  }
  const std::vector<float> expected = c.expected([&](std::size_t m, std::size_t n) {
    float sum = c.bias(n);
    for (std::size_t k = 0; k < p.k; ++k) sum = std::fma(a.data()[m * a_stride + k], w.data()[n * p.k + k], sum);
    return sum;
  });
  test::for_each_row(gemm_fp32_rows(), [&](const GemmFloatRow& row) {
    FencedArray<char> packed(aligned(row.packed_bytes(p.n, p.k)));
    row.pack(w.data(), p.n, p.k, packed.data());
    GemmFloat g;
    g.m = p.m, g.n = p.n, g.k = p.k;
    if (p.runs > 0) {
      g.segments = segments.data();
      g.segment_length = length;
    } else {
      g.a = a.data();
      g.a_stride = a_stride;
    }
    g.packed = packed.data();
    g.epilogue = c.epilogue;
    g.c = c.data();
    g.c_stride = p.n + p.c_gap;
    for (int team : {1, random.below(2) == 0 ? 2 : 4}) {
      c.reset();
      set_threads(team);
      FencedArray<char> scratch(aligned(row.scratch_bytes(p.k)) * static_cast<std::size_t>(team));
      gemm_float(row, g, scratch.data());
      set_threads(1);
      ASSERT_EQ(c.values(), expected) << team << " threads";
    }
  });
}

TEST(GemmFp32, GivesHandWorkedSums) {
  // [1 2 3; -1 0 2] times rows [1 1 1], [0.5 -2 4], plus bias [10, 0]:
  // 1+2+3+10 = 16, 0.5-4+12 = 8.5; -1+0+2+10 = 11, -0.5+0+8 = 7.5. Clamped to [0, 12].
  const float a[] = {1, 2, 3, -1, 0, 2}, w[] = {1, 1, 1, 0.5f, -2, 4}, bias[] = {10, 0};
  test::for_each_row(gemm_fp32_rows(), [&](const GemmFloatRow& row) {
    FencedArray<char> packed(aligned(row.packed_bytes(2, 3)));
    row.pack(w, 2, 3, packed.data());
    float c[4] = {};
    GemmFloat g;
    g.m = 2, g.n = 2, g.k = 3, g.a = a, g.a_stride = 3, g.packed = packed.data(), g.c = c, g.c_stride = 2;
    g.epilogue.bias = bias;
    g.epilogue.low = 0.0f, g.epilogue.high = 12.0f;
    row.run(g, 0, 2, nullptr);
    EXPECT_EQ(std::vector<float>(c, c + 4), (std::vector<float>{12, 8.5f, 11, 7.5f}));
  });
}

TEST(GemmFp32, FusesEachProductIntoTheSum) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24. Rounded by itself it loses the last term; fused with -1 it keeps it.
  const float x = 1.0f + 0x1p-12f;
  const float bias = -1.0f;
  test::for_each_row(gemm_fp32_rows(), [&](const GemmFloatRow& row) {
    FencedArray<char> packed(aligned(row.packed_bytes(1, 1)));
    row.pack(&x, 1, 1, packed.data());
    float c = 0.0f;
    GemmFloat g;
    g.m = g.n = g.k = 1, g.a = &x, g.a_stride = 1, g.packed = packed.data(), g.c = &c, g.c_stride = 1;
    g.epilogue = {&bias, nullptr, 0, -10.0f, 10.0f};
    row.run(g, 0, 1, nullptr);
    EXPECT_EQ(c, 0x1p-11f + 0x1p-24f);
  });
}

TEST(GemmFp32, EveryRowMatchesAtEverySmallSize) {
  Random random(test::test_seed(), "gemm sizes");
  for (std::size_t m : {1, 2, 3, 4, 5, 6, 7, 8, 11, 13}) {
    for (std::size_t n : {1, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 40, 63, 64, 65, 80, 100}) {
      check({m, n, 1 + random.below(20)}, random);
    }
  }
}

TEST(GemmFp32, EveryRowMatchesWhereKIsCut) {
  Random random(test::test_seed(), "gemm long k");
  for (std::size_t k : {383, 384, 385, 640, 1000}) {
    check({1, 70, k}, random);
    check({7, 40, k}, random);
    check({100, 24, k, 0, 0, 0, true, Residual::in_place, true}, random);
  }
  check({130, 20, 576, 0, 0, 9, true, Residual::apart, true}, random);
  check({50, 10, 1200, 0, 0, 2}, random);
  check({50, 10, 1201, 0, 0, 1}, random);
}

TEST(GemmFp32, EveryRowMatchesOnRandomProblems) {
  Random random(test::test_seed(), "gemm random");
  for (int i = 0; i < 60; ++i) {
    Problem p{1 + random.below(40), 1 + random.below(70), 1 + random.below(90)};
    p.runs = random.below(3) == 0 ? 1 + random.below(9) : 0;
    if (p.runs > 0) p.k = p.runs * (1 + random.below(20));
    p.a_gap = random.below(2) * random.below(9);
    p.c_gap = random.below(2) * random.below(9);
    p.has_bias = random.below(3) != 0;
    p.residual = static_cast<Residual>(random.below(3));
    p.is_clamped = random.below(2) == 0;
    check(p, random);
  }
}

TEST(GemmFp32, TakesEmptyProblems) {
  Random random(1);
  check({0, 5, 3}, random);
  check({3, 0, 3}, random);
  check({3, 5, 0}, random);  // no products: the bias
}

TEST(GemmFp32, CarriesNaNThroughTheClamp) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), one = 1.0f;
  test::for_each_row(gemm_fp32_rows(), [&](const GemmFloatRow& row) {
    FencedArray<char> packed(aligned(row.packed_bytes(1, 1)));
    row.pack(&one, 1, 1, packed.data());
    float c = 0.0f;
    GemmFloat g;
    g.m = g.n = g.k = 1, g.a = &nan, g.a_stride = 1, g.packed = packed.data(), g.c = &c, g.c_stride = 1;
    g.epilogue = {nullptr, nullptr, 0, 0.0f, 6.0f};
    row.run(g, 0, 1, nullptr);
    EXPECT_TRUE(std::isnan(c));
  });
}

TEST(GemmFp32, WritesOnlyTheColumnsAskedFor) {
  Random random(1);
  const auto a = test::random_floats(random, 4 * 5), w = test::random_floats(random, 40 * 5);
  test::for_each_row(gemm_fp32_rows(), [&](const GemmFloatRow& row) {
    FencedArray<char> packed(aligned(row.packed_bytes(40, 5)));
    row.pack(w.data(), 40, 5, packed.data());
    std::vector<float> c(4 * 40, 99.0f);
    GemmFloat g;
    g.m = 4, g.n = 40, g.k = 5, g.a = a.data(), g.a_stride = 5, g.packed = packed.data();
    g.c = c.data(), g.c_stride = 40, g.epilogue.low = -9.0f, g.epilogue.high = 9.0f;
    row.run(g, 16, 32, nullptr);
    for (std::size_t i = 0; i < c.size(); ++i) {
      EXPECT_EQ(c[i] == 99.0f, i % 40 < 16 || i % 40 >= 32) << "column " << i % 40;
    }
  });
}

}  // namespace
}  // namespace ctk::kernels
