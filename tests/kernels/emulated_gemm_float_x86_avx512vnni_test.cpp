// The AVX-512 rows of gemm_fp32, gemm_fp16 and gemm_bf16 once more, from the same sources, on emulated instructions
// (kernels/intrinsics_x86.h).
#if defined(__x86_64__) && __has_include(<simde/x86/avx512.h>)

#pragma GCC optimize("O1")  // the emulation is long code
#include "tests/kernels/emulated_avx512.h"
#define gemm_fp32_14x32_x86_avx512vnni emulated_gemm_fp32
#define gemm_fp16_14x32_x86_avx512vnni emulated_gemm_fp16
#define gemm_bf16_14x32_x86_avx512vnni emulated_gemm_bf16
#include "kernels/gemm_fp32/x86_avx512vnni.cpp"
#include "kernels/gemm_half/x86_avx512vnni.cpp"

#include "tests/kernels/gemm_float_cases.h"

namespace ctk::kernels {
namespace {

// Any host runs it.
GemmFloatRow on_any_host(const GemmFloatRow& row) {
  GemmFloatRow emulated = row;
  emulated.isa = Isa::scalar;
  return emulated;
}

void check_all(const GemmFloatRow& row, float (*held)(float)) {
  const GemmFloatRow rows[] = {on_any_host(row)};
  const FloatKind kind{rows, held};
  Random random(test::test_seed(), "emulated products");
  for (std::size_t m : {1, 2, 3, 6, 7, 14, 15, 29}) {
    for (std::size_t n : {1, 16, 17, 33, 64, 65, 128, 130}) check(kind, {m, n, 1 + random.below(9)}, random, false);
  }
  check_cut_k(kind);
}

TEST(EmulatedGemmFloat, MatchesInWholeFloats) {
  check_all(emulated_gemm_fp32, [](float weight) { return weight; });
}

TEST(EmulatedGemmFloat, MatchesInHalves) {
  check_all(emulated_gemm_fp16, [](float weight) { return half_to_float(float_to_half(weight)); });
}

TEST(EmulatedGemmFloat, MatchesInUpperHalves) {
  check_all(emulated_gemm_bf16, [](float weight) { return bfloat_to_float(float_to_bfloat(weight)); });
}

}  // namespace
}  // namespace ctk::kernels

#endif
