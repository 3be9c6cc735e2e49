// Products by coded weights for the tests: random ones, and running a row on them.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/dtype.h"
#include "core/parallel.h"
#include "kernels/gemm_wg/gemm_wg.h"
#include "tests/support/float_epilogue.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels::test {

// emulated_gemm_wg_x86_*_test.cpp; null where the emulation's headers (libsimde-dev) are missing, and on ARM.
const GemmWgRow* emulated_wg_avxvnni();
const GemmWgRow* emulated_wg_avx512vnni();

using ctk::test::FencedArray;
using ctk::test::FloatOutput;
using ctk::test::Residual;

// Calls body(row) for each row this host can run, then for those emulated instruction by instruction.
template <class Body>
void for_each_row(Body&& body) {
  ctk::test::for_each_row(gemm_wg_rows(), body);
  for (const GemmWgRow* row : {emulated_wg_avxvnni(), emulated_wg_avx512vnni()}) {
    if (row == nullptr) continue;
    SCOPED_TRACE(std::string(row->name) + " (emulated)");
    body(*row);
  }
}

// A weight matrix with everything pack() reads. codes: the header's u; zero_points: its z.
struct Weights {
  WgShape shape;
  std::size_t row_codes = 0;
  std::vector<std::uint8_t> codes, zero_points;
  std::vector<std::uint16_t> scales;

  // The number a code stands for, worked out in double.
  double value(std::size_t n, std::size_t k) const {
    const std::size_t group = n * shape.groups() + k / shape.group();
    const int zero_point = shape.is_affine ? zero_points[group] : half();
    return static_cast<double>(half_to_float(scales[group])) * (codes[n * shape.k + k] - zero_point);
  }
  int half() const { return 1 << (shape.bits - 1); }
  std::int8_t in_twos_complement(std::uint8_t u) const { return static_cast<std::int8_t>(u - half()); }
  std::vector<std::int8_t> rows() const {
    std::vector<std::int8_t> out(shape.n == 0 ? 0 : (shape.n - 1) * row_codes + shape.k, 0);
    for (std::size_t n = 0; n < shape.n; ++n) {
      for (std::size_t k = 0; k < shape.k; ++k) out[n * row_codes + k] = in_twos_complement(codes[n * shape.k + k]);
    }
    return out;
  }
  std::vector<std::int8_t> zeros() const {
    std::vector<std::int8_t> out;
    for (std::uint8_t z : zero_points) out.push_back(in_twos_complement(z));
    return out;
  }
};

inline Weights random_weights(Random& random, const WgShape& shape) {
  Weights w;
  w.shape = shape;
  w.row_codes = shape.k + random.below(3);
  const std::uint64_t codes = std::uint64_t{1} << shape.bits;
  for (std::size_t i = 0; i < shape.n * shape.k; ++i) w.codes.push_back(static_cast<std::uint8_t>(random.below(codes)));
  for (std::size_t i = 0; i < shape.n * shape.groups(); ++i) {
    w.scales.push_back(float_to_half(static_cast<float>(0.1 * random.normal())));
    if (shape.is_affine) w.zero_points.push_back(static_cast<std::uint8_t>(random.below(codes)));
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
      : codes(w.rows()), zero_points(w.zeros()), scales(w.scales), activations(a) {}
  FencedArray<std::int8_t> codes, zero_points;
  FencedArray<std::uint16_t> scales;
  FencedArray<float> activations;
};

inline std::size_t packed_size(const GemmWgRow& row, const WgShape& shape) {
  return (row.packed_bytes(shape) + 63) / 64 * 64;
}

inline void pack_by(const GemmWgRow& row, const Weights& w, Inputs& in, void* packed) {
  WgMatrix matrix;
  matrix.shape = w.shape;
  matrix.codes = in.codes.data();
  matrix.row_codes = w.row_codes;
  matrix.scales = in.scales.data();
  matrix.zero_points = w.shape.is_affine ? in.zero_points.data() : nullptr;
  pack_wg(row, matrix, packed);
}

inline std::vector<float> computed(const GemmWgRow& row, const Weights& w, Inputs& in, const Options& o,
                                   FloatOutput& c) {
  FencedArray<char> packed(packed_size(row, w.shape));
  pack_by(row, w, in, packed.data());
  FencedArray<char> scratch(gemm_wg_scratch_bytes(row, w.shape, o.digits, o.m));
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

inline std::vector<float> computed(const GemmWgRow& row, const Weights& w, const std::vector<float>& a,
                                   const Options& o, FloatOutput& c) {
  Inputs in(w, a);
  return computed(row, w, in, o, c);
}

// NaN equals NaN here, and -0 is not 0.
inline void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want) {
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
inline void compare_rows(Random& random, const Weights& w, const std::vector<float>& a, const Options& o,
                         std::vector<int> teams = {1, 2, 4}) {
  SCOPED_TRACE("m " + std::to_string(o.m) + " n " + std::to_string(w.shape.n) + " k " + std::to_string(w.shape.k) +
               " group " + std::to_string(w.shape.group_size) + " bits " + std::to_string(w.shape.bits) + " affine " +
               std::to_string(w.shape.is_affine) + " digits " + std::to_string(o.digits) + " per token " +
               std::to_string(o.per_token));
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

inline std::vector<float> random_activations(Random& random, std::size_t m, std::size_t k, std::size_t gap) {
  std::vector<float> a(m == 0 ? 0 : (m - 1) * (k + gap) + k);
  for (float& x : a) x = static_cast<float>(random.normal() * std::exp(2 * random.normal()));
  return a;
}

inline void check_random(Random& random, Options o, WgShape shape, std::vector<int> teams) {
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
constexpr int kWidths[] = {2, 3, 4, 5, 6, 8};

inline WgShape random_shape(Random& random, std::size_t n, std::size_t k) {
  return {n, k, kGroupSizes[random.below(std::size(kGroupSizes))], random.below(2) == 0,
          kWidths[random.below(std::size(kWidths))]};
}

}  // namespace ctk::kernels::test
