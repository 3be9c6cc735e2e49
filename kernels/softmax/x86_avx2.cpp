// softmax for AVX2: eight elements a step; a last, shorter step reads -infinity beyond the row, whose exp is 0.
#include "kernels/softmax/softmax.h"

#if defined(__x86_64__)

#include "kernels/floats_x86_avx2.h"

namespace ctk::kernels {
namespace {

// core/exp_negative.h, eight at a time: the same products and sums, each rounded.
inline __m256 exp_negative(__m256 of) {
  const __m256 shift = _mm256_set1_ps(12582912.0f), most = _mm256_set1_ps(87.0f);
  const __m256 sign = _mm256_set1_ps(-0.0f), magnitude = _mm256_andnot_ps(sign, of);
  const __m256 far = _mm256_cmp_ps(magnitude, most, _CMP_GT_OQ);
  const __m256 a = _mm256_xor_ps(sign, _mm256_blendv_ps(magnitude, most, far));
  const __m256 shifted = _mm256_add_ps(_mm256_mul_ps(a, _mm256_set1_ps(1.44269504088896341f)), shift);
  const __m256 n = _mm256_sub_ps(shifted, shift);
  const __m256 r = _mm256_sub_ps(_mm256_sub_ps(a, _mm256_mul_ps(n, _mm256_set1_ps(0.693359375f))),
                                 _mm256_mul_ps(n, _mm256_set1_ps(-2.12194440e-4f)));
  __m256 p = _mm256_set1_ps(1.9875691500e-4f);
  p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(1.3981999507e-3f));
  p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(8.3334519073e-3f));
  p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(4.1665795894e-2f));
  p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(1.6666665459e-1f));
  p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(5.0000001201e-1f));
  p = _mm256_add_ps(_mm256_add_ps(_mm256_mul_ps(p, _mm256_mul_ps(r, r)), r), _mm256_set1_ps(1.0f));
  const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127)), 23);
  return _mm256_andnot_ps(far, _mm256_mul_ps(p, _mm256_castsi256_ps(power)));
}

// -infinity where the mask has none.
inline __m256 load(const float* x, __m256i mask) {
  const __m256 none = _mm256_set1_ps(-__builtin_inff());
  return _mm256_blendv_ps(none, _mm256_maskload_ps(x, mask), _mm256_castsi256_ps(mask));
}

void run(const float* x, float* y, std::size_t count) {
  const std::size_t whole = count / 8 * 8, rest = count - whole;
  const __m256i mask = mask_of(rest);
  __m256 largest = _mm256_set1_ps(-__builtin_inff());
  // The largest second: a NaN leaves it as it is.
  for (std::size_t i = 0; i < whole; i += 8) largest = _mm256_max_ps(_mm256_loadu_ps(x + i), largest);
  if (rest > 0) largest = _mm256_max_ps(load(x + whole, mask), largest);
  float lanes[8];
  _mm256_storeu_ps(lanes, largest);
  float most = lanes[0];
  for (int i = 1; i < 8; ++i) most = lanes[i] > most ? lanes[i] : most;
  const __m256 m = _mm256_set1_ps(most);
  Doubles sums{_mm256_setzero_pd(), _mm256_setzero_pd()};
  for (std::size_t i = 0; i < count; i += 8) {
    const bool is_whole = i < whole;
    __m256 e = exp_negative(_mm256_sub_ps(is_whole ? _mm256_loadu_ps(x + i) : load(x + i, mask), m));
    if (is_whole) {
      _mm256_storeu_ps(y + i, e);
    } else {
      e = _mm256_and_ps(e, _mm256_castsi256_ps(mask));
      _mm256_maskstore_ps(y + i, mask, e);
    }
    sums = add(sums, doubles_of(e));
  }
  const auto factor = static_cast<float>(1.0 / in_order(sums));
  const __m256 f = _mm256_set1_ps(factor);
  for (std::size_t i = 0; i < whole; i += 8) _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(y + i), f));
  for (std::size_t i = whole; i < count; ++i) y[i] *= factor;
}

}  // namespace

const SoftmaxRow softmax_x86_avx2 = {Isa::x86_avx2, "softmax_x86_avx2", run};

}  // namespace ctk::kernels

#endif
