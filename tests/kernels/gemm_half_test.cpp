#include "kernels/gemm_half/gemm_half.h"

#include "core/dtype.h"
#include "tests/kernels/gemm_float_cases.h"

namespace ctk::kernels {
namespace {

class GemmHalf : public testing::TestWithParam<bool> {
 public:
  static FloatKind kind() {
    if (GetParam()) return {gemm_bf16_rows(), [](float weight) { return bfloat_to_float(float_to_bfloat(weight)); }};
    return {gemm_fp16_rows(), [](float weight) { return half_to_float(float_to_half(weight)); }};
  }
};

// One weight times one.
float product_with(const GemmFloatRow& row, float weight) {
  const float one = 1.0f;
  test::FencedArray<char> packed(aligned(row.packed_bytes(1, 1))), scratch(aligned(row.scratch_bytes(1)));
  row.pack(&weight, 1, 1, packed.data());
  float c = 0.0f;
  GemmFloat g;
  g.m = g.n = g.k = 1, g.a = &one, g.a_stride = 1, g.packed = packed.data(), g.c = &c, g.c_stride = 1;
  g.epilogue.low = -std::numeric_limits<float>::infinity();
  g.epilogue.high = std::numeric_limits<float>::infinity();
  row.run(g, 0, 1, scratch.data());
  return c;
}

TEST_P(GemmHalf, EveryRowMatchesAtEverySmallSize) {
  check_small_sizes(kind());
}

TEST_P(GemmHalf, EveryRowMatchesWhereKIsCut) {
  check_cut_k(kind());
}

TEST_P(GemmHalf, EveryRowMatchesOnRandomProblems) {
  check_random(kind());
}

TEST_P(GemmHalf, TakesEmptyProblems) {
  Random random(1);
  check(kind(), {0, 5, 3}, random);
  check(kind(), {3, 0, 3}, random);
  check(kind(), {3, 5, 0}, random);
}

TEST_P(GemmHalf, HoldsAPanelInTwoBytesAWeight) {
  for (const GemmFloatRow& row : kind().rows) EXPECT_EQ(row.packed_bytes(32, 7), 32u * 7 * 2) << row.name;
}

TEST_P(GemmHalf, CarriesInfiniteWeightsAndNaN) {
  const float infinite = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  test::for_each_row(kind().rows, [&](const GemmFloatRow& row) {
    EXPECT_EQ(product_with(row, -infinite), -infinite);
    EXPECT_TRUE(std::isnan(product_with(row, nan)));
  });
}

INSTANTIATE_TEST_SUITE_P(Forms, GemmHalf, testing::Bool(),
                         [](const auto& form) { return form.param ? "bf16" : "fp16"; });

TEST(GemmFp16, KeepsTheLeastAndTheGreatestHalf) {
  // 2^-24, the least half, 2^-14 - 2^-24, the greatest subnormal one, 65504, the greatest.
  test::for_each_row(gemm_fp16_rows(), [&](const GemmFloatRow& row) {
    for (float weight : {0x1p-24f, -0x1p-24f, 0x1p-14f - 0x1p-24f, 65504.0f}) {
      EXPECT_EQ(product_with(row, weight), weight);
    }
  });
}

TEST(GemmBf16, KeepsEightBitsOfAnySize) {
  // Eight bits each: 255 * 2^k, far beyond what a half holds.
  test::for_each_row(gemm_bf16_rows(), [&](const GemmFloatRow& row) {
    for (float weight : {255.0f * 0x1p119f, -255.0f * 0x1p-100f, 0x1p-126f, 1.0f + 0x1p-7f}) {
      EXPECT_EQ(product_with(row, weight), weight);
    }
  });
}

}  // namespace
}  // namespace ctk::kernels
