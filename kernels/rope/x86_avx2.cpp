// rope for AVX2: eight pairs half a head apart, or four neighbouring ones, a step.
#include "kernels/rope/rope.h"

#if defined(__x86_64__)

#include "kernels/floats_x86_avx2.h"

namespace ctk::kernels {
namespace {

inline void halves(const Rope& rope, const float* x, const float* cosines, const float* sines, float* y) {
  std::size_t i = 0;
  for (; i + 8 <= rope.pairs; i += 8) {
    const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + rope.pairs + i);
    const __m256 c = _mm256_loadu_ps(cosines + i), s = _mm256_loadu_ps(sines + i);
    _mm256_storeu_ps(y + i, _mm256_sub_ps(_mm256_mul_ps(a, c), _mm256_mul_ps(b, s)));
    _mm256_storeu_ps(y + rope.pairs + i, _mm256_add_ps(_mm256_mul_ps(a, s), _mm256_mul_ps(b, c)));
  }
  for (; i < rope.pairs; ++i) {
    const float a = x[i], b = x[rope.pairs + i];
    y[i] = a * cosines[i] - b * sines[i];
    y[rope.pairs + i] = a * sines[i] + b * cosines[i];
  }
}

// Four factors, each for two neighbours.
inline __m256 doubled(const float* from) {
  const __m128 four = _mm_loadu_ps(from);
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_unpacklo_ps(four, four)), _mm_unpackhi_ps(four, four), 1);
}

// [a, b] * c + [-b, a] * s: a * c - b * s and b * c + a * s, whose sums are the same either way round.
inline void neighbours(const Rope& rope, const float* x, const float* cosines, const float* sines, float* y) {
  std::size_t i = 0;
  for (; i + 4 <= rope.pairs; i += 4) {
    const __m256 ab = _mm256_loadu_ps(x + 2 * i), ba = _mm256_permute_ps(ab, 0xb1);
    _mm256_storeu_ps(y + 2 * i,
                     _mm256_addsub_ps(_mm256_mul_ps(ab, doubled(cosines + i)), _mm256_mul_ps(ba, doubled(sines + i))));
  }
  for (; i < rope.pairs; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] = a * cosines[i] - b * sines[i];
    y[2 * i + 1] = a * sines[i] + b * cosines[i];
  }
}

void turn(const Rope& rope, const float* x, const float* cosines, const float* sines, float* y) {
  for (std::size_t head = 0; head < rope.heads; ++head, x += rope.size, y += rope.size) {
    if (rope.interleaved)
      neighbours(rope, x, cosines, sines, y);
    else
      halves(rope, x, cosines, sines, y);
    for (std::size_t i = 2 * rope.pairs; i < rope.size; ++i) y[i] = x[i];
  }
}

}  // namespace

const RopeRow rope_x86_avx2 = {Isa::x86_avx2, "rope_x86_avx2", turn};

}  // namespace ctk::kernels

#endif
