// lookup for ARM's vectors: the table in sixteen registers, four lookups of 64 entries for 16 codes. A lookup leaves
// the result of the one before it where the code, less its first entry's, is not below 64.
#include "kernels/lookup/lookup.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace ctk::kernels {
namespace {

void lookup(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y, std::size_t count) {
  const uint8x16x4_t t0 = vld1q_u8_x4(table), t1 = vld1q_u8_x4(table + 64);
  const uint8x16x4_t t2 = vld1q_u8_x4(table + 128), t3 = vld1q_u8_x4(table + 192);
  const uint8x16_t step = vdupq_n_u8(64);
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8x16_t at0 = vld1q_u8(x + i), at1 = vsubq_u8(at0, step);
    const uint8x16_t at2 = vsubq_u8(at1, step), at3 = vsubq_u8(at2, step);
    uint8x16_t codes = vqtbl4q_u8(t0, at0);
    codes = vqtbx4q_u8(codes, t1, at1);
    codes = vqtbx4q_u8(codes, t2, at2);
    codes = vqtbx4q_u8(codes, t3, at3);
    vst1q_u8(y + i, codes);
  }
  for (; i < count; ++i) y[i] = table[x[i]];
}

}  // namespace

const LookupRow lookup_arm_neondot = {Isa::arm_neondot, "lookup_arm_neondot", lookup};

}  // namespace ctk::kernels

#endif
