#include "tests/kernels/gemm_float_cases.h"

namespace ctk::kernels {
namespace {

const FloatKind kFp32{gemm_fp32_rows(), [](float weight) { return weight; }};

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
  check_small_sizes(kFp32);
}

TEST(GemmFp32, EveryRowMatchesWhereKIsCut) {
  check_cut_k(kFp32);
}

TEST(GemmFp32, EveryRowMatchesOnRandomProblems) {
  check_random(kFp32);
}

TEST(GemmFp32, TakesEmptyProblems) {
  Random random(1);
  check(kFp32, {0, 5, 3}, random);
  check(kFp32, {3, 0, 3}, random);
  check(kFp32, {3, 5, 0}, random);  // no products: the bias
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
