// gemm_fp16 and gemm_bf16 for ARM: the tiles of gemm_fp32 with weights widened as they are read.
#include "kernels/gemm_half/gemm_half.h"

#if defined(__aarch64__)

#include "kernels/gemm_fp32/tiles_arm_neon.h"

namespace ctk::kernels {
namespace {

struct Half {
  using Stored = unsigned short;
  static float32x4_t widen(const Stored* from) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))); }
  static Stored narrow(float value) { return vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(value))), 0); }
};

struct Brain {
  using Stored = unsigned short;  // the upper half of a float
  static float32x4_t widen(const Stored* from) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16)); }
  static Stored narrow(float value) { return vget_lane_u16(vreinterpret_u16_f32(vdup_n_f32(value)), 1); }
};

}  // namespace

const GemmFloatRow gemm_fp16_6x16_arm_neondot = {
    Isa::arm_neondot, "gemm_fp16_6x16_arm_neondot", kRows, kPanel, packed_bytes<Half>, pack<Half>, scratch_bytes,
    run<Half>};
const GemmFloatRow gemm_bf16_6x16_arm_neondot = {
    Isa::arm_neondot, "gemm_bf16_6x16_arm_neondot", kRows, kPanel, packed_bytes<Brain>, pack<Brain>, scratch_bytes,
    run<Brain>};

}  // namespace ctk::kernels

#endif
