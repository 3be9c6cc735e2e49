// rope for ARM's vectors: four pairs a step; neighbours are taken apart as they are loaded.
#include "kernels/rope/rope.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace ctk::kernels {
namespace {

struct Turned {
  float32x4_t a, b;
};

inline Turned turned(float32x4_t a, float32x4_t b, const float* cosines, const float* sines) {
  const float32x4_t c = vld1q_f32(cosines), s = vld1q_f32(sines);
  return {vsubq_f32(vmulq_f32(a, c), vmulq_f32(b, s)), vaddq_f32(vmulq_f32(a, s), vmulq_f32(b, c))};
}

void turn(const Rope& rope, const float* x, const float* cosines, const float* sines, float* y) {
  const std::size_t step = rope.interleaved ? 2 : 1, apart = rope.interleaved ? 1 : rope.pairs;
  for (std::size_t head = 0; head < rope.heads; ++head, x += rope.size, y += rope.size) {
    std::size_t i = 0;
    for (; i + 4 <= rope.pairs; i += 4) {
      if (rope.interleaved) {
        const float32x4x2_t ab = vld2q_f32(x + 2 * i);
        const Turned t = turned(ab.val[0], ab.val[1], cosines + i, sines + i);
        vst2q_f32(y + 2 * i, {{t.a, t.b}});
      } else {
        const Turned t = turned(vld1q_f32(x + i), vld1q_f32(x + rope.pairs + i), cosines + i, sines + i);
        vst1q_f32(y + i, t.a);
        vst1q_f32(y + rope.pairs + i, t.b);
      }
    }
    for (; i < rope.pairs; ++i) {
      const float a = x[step * i], b = x[step * i + apart];
      y[step * i] = a * cosines[i] - b * sines[i];
      y[step * i + apart] = a * sines[i] + b * cosines[i];
    }
    for (i = 2 * rope.pairs; i < rope.size; ++i) y[i] = x[i];
  }
}

}  // namespace

const RopeRow rope_arm_neondot = {Isa::arm_neondot, "rope_arm_neondot", turn};

}  // namespace ctk::kernels

#endif
