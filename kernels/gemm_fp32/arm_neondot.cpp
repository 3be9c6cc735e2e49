// gemm_fp32 for ARM.
#include "kernels/gemm_fp32/gemm_fp32.h"

#if defined(__aarch64__)

#include "kernels/gemm_fp32/tiles_arm_neon.h"

namespace ctk::kernels {
namespace {

struct Whole {
  using Stored = float;
  static float32x4_t widen(const float* from) { return vld1q_f32(from); }
  static float narrow(float value) { return value; }
};

}  // namespace

const GemmFloatRow gemm_fp32_6x16_arm_neondot = {
    Isa::arm_neondot, "gemm_fp32_6x16_arm_neondot", kRows, kPanel, packed_bytes<Whole>, pack<Whole>, scratch_bytes,
    run<Whole>};

}  // namespace ctk::kernels

#endif
