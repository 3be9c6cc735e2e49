// Writing keys and values into the cache. Sources with AVX2 only; internal linkage.
#pragma once

#include "kernels/attention/rounding_x86_avx2.h"

namespace ctk::kernels {
namespace {

// One token's elements as the cache stores them, zeros to a multiple of 8. Gives the scale of int8.
inline float convert_token(const float* x, std::size_t size, float* out) {
  for (std::size_t d = 0; d < size; d += 8) _mm256_storeu_ps(out + d, load_at_most_8(x + d, size - d));
  return 0.0f;
}

inline float convert_token(const float* x, std::size_t size, std::uint16_t* out) {
  for (std::size_t d = 0; d < size; d += 8) {
    const __m128i halves = _mm256_cvtps_ph(load_at_most_8(x + d, size - d), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + d), halves);
  }
  return 0.0f;
}

inline float convert_token(const float* x, std::size_t size, std::int8_t* out) {
  const Rounding rounding = rounding_of(x, size, 127.0f);
  const __m256 inverse = _mm256_set1_ps(rounding.inverse);
  for (std::size_t d = 0; d < size; d += 8) {
    const __m256i words = packed_16(rounded(load_at_most_8(x + d, size - d), inverse), _mm256_setzero_si256());
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm_setzero_si128());
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + d), bytes);
  }
  return rounding.step;
}

template <class T>
void append_as(const KvAppend& a, std::size_t kv_head) {
  constexpr bool kCoded = sizeof(T) == 1;
  const CacheShape& s = a.cache.shape;
  const std::size_t key_pitch = s.key_pitch(), value_pitch = s.value_pitch();
  T* keys = static_cast<T*>(a.cache.keys) + kv_head * s.capacity * key_pitch;
  T* values = static_cast<T*>(a.cache.values) + kv_head * s.capacity * value_pitch;
  alignas(32) T token[CacheShape::kMostValueSize];
  static_assert(CacheShape::kMostKeySize <= CacheShape::kMostValueSize);
  for (std::size_t i = 0; i < a.tokens; ++i) {
    const std::size_t position = a.first + i, in_block = position % kBlock;
    const float* key = a.keys + i * a.key_stride + kv_head * s.key_size;
    const float* value = a.values + i * a.value_stride + kv_head * s.value_size;
    const float key_scale = convert_token(key, s.key_size, token);
    T* block = keys + (position - in_block) * key_pitch;
    if constexpr (kCoded) {
      T* to = block + 2 * in_block;
      for (std::size_t d = 0; d < key_pitch; d += 2, to += 2 * kBlock) __builtin_memcpy(to, token + d, 2);
    } else {
      for (std::size_t d = 0; d < key_pitch; ++d) block[d * kBlock + in_block] = token[d];
    }
    if constexpr (kCoded) {
      const float value_scale = convert_token(value, s.value_size, token);
      T* to = values + position / 2 * 2 * value_pitch + position % 2;
      for (std::size_t d = 0; d < value_pitch; ++d) to[2 * d] = token[d];
      a.cache.key_scales[kv_head * s.capacity + position] = key_scale;
      a.cache.value_scales[kv_head * s.capacity + position] = value_scale;
    } else {
      convert_token(value, s.value_size, values + position * value_pitch);
    }
  }
}

inline void append(const KvAppend& a, std::size_t kv_head) {
  if (a.cache.shape.form == CacheForm::f32) append_as<float>(a, kv_head);
  if (a.cache.shape.form == CacheForm::f16) append_as<std::uint16_t>(a, kv_head);
  if (a.cache.shape.form == CacheForm::i8) append_as<std::int8_t>(a, kv_head);
}

}  // namespace
}  // namespace ctk::kernels
