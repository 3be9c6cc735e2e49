// norm for AVX2: eight elements a step, in two vectors of doubles; the parts of the sums are their lanes.
#include "kernels/norm/norm.h"

#if defined(__x86_64__)

#include <cmath>

#include "kernels/floats_x86_avx2.h"

namespace ctk::kernels {
namespace {

// Of x, (x - mean)^2 or x^2; lanes behind the row's end add nothing.
enum class Of { itself, square };
template <Of of>
inline double sum_of(const float* x, std::size_t count, double mean) {
  Doubles sums{_mm256_setzero_pd(), _mm256_setzero_pd()};
  const __m256d middle = _mm256_set1_pd(mean);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    Doubles v = doubles_of(_mm256_loadu_ps(x + i));
    if constexpr (of == Of::square) {
      v.low = _mm256_sub_pd(v.low, middle);
      v.high = _mm256_sub_pd(v.high, middle);
      v.low = _mm256_mul_pd(v.low, v.low);
      v.high = _mm256_mul_pd(v.high, v.high);
    }
    sums = add(sums, v);
  }
  if (i == count) return in_order(sums);
  double lanes[8];
  store(lanes, sums);
  for (int lane = 0; i < count; ++i, ++lane) {
    const double v = of == Of::square ? static_cast<double>(x[i]) - mean : static_cast<double>(x[i]);
    lanes[lane] += of == Of::square ? v * v : v;
  }
  return in_order(lanes);
}

void rms(const Norm& n, const float* x, float* y) {
  const double mean = sum_of<Of::square>(x, n.count, 0.0) / static_cast<double>(n.count);
  const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + n.epsilon));
  const __m256 factor = _mm256_set1_ps(inverse);
  std::size_t i = 0;
  for (; i + 8 <= n.count; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), factor);
    _mm256_storeu_ps(y + i, _mm256_mul_ps(scaled, _mm256_loadu_ps(n.scale + i)));
  }
  for (; i < n.count; ++i) y[i] = x[i] * inverse * n.scale[i];
}

void layer(const Norm& n, const float* x, float* y) {
  const auto size = static_cast<double>(n.count);
  const double mean = sum_of<Of::itself>(x, n.count, 0.0) / size;
  const double inverse = 1.0 / std::sqrt(sum_of<Of::square>(x, n.count, mean) / size + n.epsilon);
  const __m256d middle = _mm256_set1_pd(mean), factor = _mm256_set1_pd(inverse);
  std::size_t i = 0;
  for (; i + 8 <= n.count; i += 8) {
    const Doubles v = doubles_of(_mm256_loadu_ps(x + i));
    const __m128 low = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_sub_pd(v.low, middle), factor));
    const __m128 high = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_sub_pd(v.high, middle), factor));
    const __m256 both = _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
    const __m256 scaled = _mm256_mul_ps(both, _mm256_loadu_ps(n.scale + i));
    const __m256 shifted = n.shift == nullptr ? scaled : _mm256_add_ps(scaled, _mm256_loadu_ps(n.shift + i));
    _mm256_storeu_ps(y + i, shifted);
  }
  for (; i < n.count; ++i) {
    const float scaled = static_cast<float>((static_cast<double>(x[i]) - mean) * inverse) * n.scale[i];
    y[i] = n.shift != nullptr ? scaled + n.shift[i] : scaled;
  }
}

}  // namespace

const NormRow norm_x86_avx2 = {Isa::x86_avx2, "norm_x86_avx2", rms, layer};

}  // namespace ctk::kernels

#endif
