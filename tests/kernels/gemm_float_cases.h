// Problems for the kinds of float product, each with sums worked out one by one.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "core/parallel.h"
#include "kernels/gemm_fp32/gemm_fp32.h"
#include "tests/support/float_epilogue.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {

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

inline std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// A kind of float product: its rows, and what becomes of a weight in the bits that the kind keeps.
struct FloatKind {
  std::span<const GemmFloatRow> rows;
  float (*held)(float);
};

// Runs every row on the problem and compares with sums worked out one by one; with more threads as well if asked to.
inline void check(const FloatKind& kind, const Problem& p, Random& random, bool is_by_teams = true) {
  SCOPED_TRACE("m " + std::to_string(p.m) + " n " + std::to_string(p.n) + " k " + std::to_string(p.k) + " runs " +
               std::to_string(p.runs));
  const std::size_t a_stride = p.k + p.a_gap;
  FencedArray<float> a(test::random_floats(random, p.m == 0 ? 0 : (p.m - 1) * a_stride + p.k));
  std::vector<float> weights = test::random_floats(random, p.n * p.k);
  for (float& weight : weights) weight = kind.held(weight);
  FencedArray<float> w(weights);
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
  test::for_each_row(kind.rows, [&](const GemmFloatRow& row) {
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
    for (int team : is_by_teams ? std::vector<int>{1, random.below(2) == 0 ? 2 : 4} : std::vector<int>{1}) {
      c.reset();
      set_threads(team);
      FencedArray<char> scratch(aligned(row.scratch_bytes(p.k)) * static_cast<std::size_t>(team));
      gemm_float(row, g, scratch.data());
      set_threads(1);
      ASSERT_EQ(c.values(), expected) << team << " threads";
    }
  });
}

inline void check_small_sizes(const FloatKind& kind) {
  Random random(test::test_seed(), "gemm sizes");
  for (std::size_t m : {1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 14, 15, 29}) {
    for (std::size_t n : {1, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 40, 63, 64, 65, 80, 100, 128, 145}) {
      check(kind, {m, n, 1 + random.below(20)}, random);
    }
  }
}

inline void check_cut_k(const FloatKind& kind) {
  Random random(test::test_seed(), "gemm long k");
  for (std::size_t k : {383, 384, 385, 640, 1000}) {
    check(kind, {1, 70, k}, random);
    check(kind, {7, 40, k}, random);
    check(kind, {100, 24, k, 0, 0, 0, true, Residual::in_place, true}, random);
  }
  check(kind, {130, 20, 576, 0, 0, 9, true, Residual::apart, true}, random);
  check(kind, {50, 10, 1200, 0, 0, 2}, random);
  check(kind, {50, 10, 1201, 0, 0, 1}, random);
}

// 60 problems of many tiles, then many more of few, on one thread.
inline void check_random(const FloatKind& kind) {
  Random random(test::test_seed(), "gemm random");
  const int cases = 60 + test::cases(10000);
  for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) {
    const bool is_large = i < 60;
    Problem p{1 + random.below(is_large ? 40 : 8), 1 + random.below(is_large ? 70 : 34),
              1 + random.below(is_large ? 90 : 12)};
    p.runs = random.below(3) == 0 ? 1 + random.below(is_large ? 9 : 4) : 0;
    if (p.runs > 0) p.k = p.runs * (1 + random.below(is_large ? 20 : 4));
    p.a_gap = random.below(2) * random.below(9);
    p.c_gap = random.below(2) * random.below(9);
    p.has_bias = random.below(3) != 0;
    p.residual = static_cast<Residual>(random.below(3));
    p.is_clamped = random.below(2) == 0;
    check(kind, p, random, is_large);
  }
}

}  // namespace ctk::kernels
