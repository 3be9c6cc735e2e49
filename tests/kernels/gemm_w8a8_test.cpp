#include "kernels/gemm_w8a8/gemm_w8a8.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/parallel.h"
#include "kernels/gemm_w4a8/gemm_w4a8.h"
#include "tests/kernels/integer_cases.h"
#include "tests/kernels/integer_rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels::test {
namespace {

struct GemmCase {
  std::size_t m = 1, n = 1, k = 1;
  std::size_t a_offset = 0, a_gap = 0;  // bytes before the first row and between rows: misaligned on purpose
  std::vector<std::uint8_t> a;
  std::vector<std::int8_t> w;
  Epilogue epilogue;
  std::size_t stride() const { return k + a_gap; }
};

std::vector<float> expected(const GemmCase& c) {
  std::vector<float> y;
  for (std::size_t i = 0; i < c.m; ++i) {
    for (std::size_t j = 0; j < c.n; ++j) {
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < c.k; ++k) {
        sum += std::int64_t{c.a[c.a_offset + i * c.stride() + k]} * c.w[j * c.k + k];
      }
      y.push_back(expected_output(c.epilogue, sum, i, j));
    }
  }
  return y;
}

std::vector<float> computed(const GemmIntRow& row, const GemmCase& c) {
  const std::size_t team = static_cast<std::size_t>(threads());
  Buffer packed(row.packed_bytes(c.n, c.k)), scratch(team * gemm_int_scratch_bytes(row, c.k));
  row.pack(c.w.data(), c.n, c.k, packed.data());
  auto y = run_into_output(c.epilogue, c.m * c.n, [&](const EpilogueInt& e, void* out) {
    GemmInt g;
    g.m = c.m;
    g.n = c.n;
    g.k = c.k;
    g.a = c.a.data() + c.a_offset;
    g.a_stride = c.stride();
    g.packed = packed.data();
    g.epilogue = e;
    g.c = out;
    g.c_stride = c.n;
    gemm_int(row, g, scratch.data());
  });
  EXPECT_TRUE(packed.guard_is_whole() && scratch.guard_is_whole()) << "memory past a buffer was written";
  return y;
}

GemmCase random_case(Random& random, std::size_t m, std::size_t n, std::size_t k, int low, int high) {
  GemmCase c;
  c.m = m;
  c.n = n;
  c.k = k;
  c.a_offset = static_cast<std::size_t>(uniform(random, 0, 3));
  c.a_gap = static_cast<std::size_t>(uniform(random, 0, 1) * uniform(random, 1, 5));
  c.a = random_codes(random, c.a_offset + (m - 1) * c.stride() + k);  // ends with the last row: reading on is an error
  c.w = random_weights(random, n * k, low, high);
  c.epilogue = random_epilogue(random, m, n, k);
  return c;
}

struct Kind {
  const char* name;
  std::span<const GemmIntRow> (*rows)();
  int low, high;
};

class GemmInteger : public testing::TestWithParam<Kind> {
 protected:
  void check(const GemmCase& c, const std::string& what) {
    const std::vector<float> want = expected(c);
    for_each_gemm_row(GetParam().rows(), [&](const GemmIntRow& row, const std::string& name) {
      ASSERT_EQ(computed(row, c), want) << name << ", " << what << ": m " << c.m << ", n " << c.n << ", k " << c.k
                                        << ", " << threads() << " threads";
    });
  }
};

TEST_P(GemmInteger, EqualsTheDirectSumsOnRandomShapes) {
  const unsigned seed = 1234;
  Random random(seed);
  const int cases = ctk::test::cases(10000);
  for (int i = 0; i < cases && !HasFatalFailure(); ++i) {
    const auto up_to = [&](int most) { return static_cast<std::size_t>(uniform(random, 1, most)); };
    const GemmCase c = random_case(random, up_to(14), up_to(35), up_to(40), GetParam().low, GetParam().high);
    set_threads(i % 256 == 0 ? uniform(random, 2, 4) : 1);
    check(c, "seed 1234, case " + std::to_string(i));
  }
  set_threads(1);
}

TEST_P(GemmInteger, MeetsEveryTailOfATile) {
  Random random(77);
  for (std::size_t n = 1; n <= 33; ++n) {
    for (std::size_t m : {1, 5, 6, 7, 8, 9, 13}) {
      for (std::size_t k : {1, 2, 3, 4, 5, 31, 32, 33, 65}) {
        check(random_case(random, m, n, k, GetParam().low, GetParam().high), "tails");
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(GemmInteger, HandlesLongSumsAndManyRows) {
  Random random(78);
  const std::size_t shapes[][3] = {{1, 1000, 1280}, {3, 17, 4096}, {200, 48, 100}, {400, 20, 7}, {50, 40, 2049}};
  for (const auto& s : shapes) {
    for (int threads : {1, 2, 4}) {
      set_threads(threads);
      check(random_case(random, s[0], s[1], s[2], GetParam().low, GetParam().high), "long");
      if (HasFatalFailure()) break;
    }
  }
  set_threads(1);
}

// What lets a caller pack columns a few at a time.
TEST_P(GemmInteger, PacksBlocksOfColumnsAsByCallsOfTheirOwn) {
  Random random(79);
  for (std::size_t n : {1, 16, 17, 50}) {
    for (std::size_t k : {1, 4, 7, 72}) {
      const auto w = random_weights(random, n * k, GetParam().low, GetParam().high);
      for_each_gemm_row(GetParam().rows(), [&](const GemmIntRow& row, const std::string& name) {
        std::vector<char> whole(row.packed_bytes(n, k)), parts(whole.size());
        row.pack(w.data(), n, k, whole.data());
        for (std::size_t first = 0; first < n; first += row.n_step) {
          row.pack(w.data() + first * k, std::min(row.n_step, n - first), k, parts.data() + row.packed_bytes(first, k));
        }
        EXPECT_EQ(parts, whole) << name << ": n " << n << ", k " << k;
      });
    }
  }
}

// Activations all 255 and weights all at one end: what saturating multiply-add instructions get wrong.
TEST_P(GemmInteger, KeepsExtremeSumsExact) {
  for (int weight : {GetParam().low, GetParam().high}) {
    for (std::size_t k : {1, 2, 3, 4, 7, 8, 32, 33, 64, 576}) {
      GemmCase c;
      c.m = 7;
      c.n = 33;
      c.k = k;
      c.a.assign(c.m * k, 255);
      c.w.assign(c.n * k, static_cast<std::int8_t>(weight));
      c.epilogue.bias.assign(c.n, 0);
      c.epilogue.multiplier.assign(c.n, 1.0f);
      c.epilogue.value.to_float = true;
      c.epilogue.value.low_f = -1e9f;
      c.epilogue.value.high_f = 1e9f;
      const std::vector<float> want(c.m * c.n, static_cast<float>(255 * weight * static_cast<int>(k)));
      for_each_gemm_row(GetParam().rows(), [&](const GemmIntRow& row, const std::string& name) {
        EXPECT_EQ(computed(row, c), want) << name << ", weight " << weight << ", k " << k;
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GemmInteger,
                         testing::Values(Kind{"w8a8", gemm_w8a8_rows, -128, 127}, Kind{"w4a8", gemm_w4a8_rows, -8, 7}),
                         [](const auto& info) { return std::string(info.param.name); });

// One dot product of `k` products 255 * 127 through the float epilogue with multiplier 1.
float extreme_dot(const GemmIntRow& row, std::size_t k) {
  GemmCase c;
  c.k = k;
  c.a.assign(k, 255);
  c.w.assign(k, 127);
  c.epilogue.bias = {0};
  c.epilogue.multiplier = {1.0f};
  c.epilogue.value.to_float = true;
  c.epilogue.value.high_f = 1e9f;
  return computed(row, c)[0];
}

TEST(GemmW8A8, DoesNotSaturatePairsOf255Times127) {
  for_each_gemm_row(gemm_w8a8_rows(), [](const GemmIntRow& row, const std::string& name) {
    EXPECT_EQ(extreme_dot(row, 2), 64770.0f) << name;     // saturating: 32767
    EXPECT_EQ(extreme_dot(row, 64), 2072640.0f) << name;  // saturating: 1048544
  });
}

// Codes of one output for sums given by the bias alone.
std::vector<float> codes_of(const GemmIntRow& row, std::vector<std::int32_t> sums, float multiplier, EpilogueInt e) {
  GemmCase c;
  c.n = sums.size();
  c.a = {0};
  c.w.assign(c.n, 1);
  c.epilogue.bias = std::move(sums);
  c.epilogue.multiplier.assign(c.n, multiplier);
  c.epilogue.value = e;
  return computed(row, c);
}

TEST(GemmW8A8, RoundsTiesToEvenAroundTheZeroPoint) {
  // Sum / 2 for sums -5..5: -2.5 -2 -1.5 -1 -.5 0 .5 1 1.5 2 2.5 -> -2 -2 -2 -1 0 0 0 1 2 2 2, plus zero point 128.
  EpilogueInt e;
  e.zero_point = 128;
  for_each_gemm_row(gemm_w8a8_rows(), [&](const GemmIntRow& row, const std::string& name) {
    EXPECT_EQ(codes_of(row, {-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5}, 0.5f, e),
              (std::vector<float>{126, 126, 126, 127, 128, 128, 128, 129, 130, 130, 130}))
        << name;
  });
}

TEST(GemmW8A8, ClampsCodesAndSurvivesSumsBeyondTheRangeOfInt32) {
  // 2^31 - 1 times 1e6 overflows any integer: the clamp comes first.
  EpilogueInt e;
  e.zero_point = 10;
  e.low = 10;
  e.high = 200;
  const std::int32_t most = std::numeric_limits<std::int32_t>::max(), least = std::numeric_limits<std::int32_t>::min();
  for_each_gemm_row(gemm_w8a8_rows(), [&](const GemmIntRow& row, const std::string& name) {
    EXPECT_EQ(codes_of(row, {most, least, 0}, 1e6f, e), (std::vector<float>{200, 10, 10})) << name;
    EXPECT_EQ(codes_of(row, {300, -300, 50}, 1.0f, e), (std::vector<float>{200, 10, 60})) << name;
  });
}

TEST(GemmW8A8, RoundsTwiceWhenAResidualIsAdded) {
  // First step: 5 * 0.5 = 2.5 -> 2 (mid zero point 100: code 102). Then 2 * 0.75 + (9 - 4) * 0.2 = 1.5 + 1.0 = 2.5 ->
  // 2, plus zero point 20. Rounding once would give 5 * 0.5 * 0.75 + 1 = 2.875 -> 3.
  GemmCase c;
  c.a = {0};
  c.w = {0};
  c.epilogue.bias = {5};
  c.epilogue.multiplier = {0.5f};
  c.epilogue.residual = {9};
  EpilogueInt& e = c.epilogue.value;
  e.zero_point = 20;
  e.residual.stride = 1;
  e.residual.mid_zero_point = 100;
  e.residual.mid_ratio = 0.75f;
  e.residual.residual_zero_point = 4;
  e.residual.residual_ratio = 0.2f;
  for_each_gemm_row(gemm_w8a8_rows(), [&](const GemmIntRow& row, const std::string& name) {
    EXPECT_EQ(computed(row, c), std::vector<float>{22.0f}) << name;
  });
}

TEST(GemmW8A8, RunsEmulatedRowsOnHostsWithoutTheirInstructions) {
  if (emulated_avxvnni() == nullptr) GTEST_SKIP() << "libsimde-dev is not installed, or not on x86";
  EXPECT_EQ(emulated_avxvnni()->isa, Isa::x86_avxvnni);
  EXPECT_EQ(emulated_avx512vnni()->isa, Isa::x86_avx512vnni);
}

}  // namespace
}  // namespace ctk::kernels::test
