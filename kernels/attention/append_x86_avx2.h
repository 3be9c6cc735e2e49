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

// Where one head's tokens come from and go to.
template <class T>
struct Head {
  const float* keys;
  const float* values;
  T* to_keys;
  T* to_values;

  Head(const KvAppend& a, std::size_t kv_head)
      : keys(a.keys + kv_head * a.cache.shape.key_size),
        values(a.values + kv_head * a.cache.shape.value_size),
        to_keys(static_cast<T*>(a.cache.keys) + kv_head * a.cache.shape.capacity * a.cache.shape.key_pitch()),
        to_values(static_cast<T*>(a.cache.values) + kv_head * a.cache.shape.capacity * a.cache.shape.value_pitch()) {}
};

template <class T>
void append_floats(const KvAppend& a, std::size_t kv_head) {
  const CacheShape& s = a.cache.shape;
  const Head<T> head(a, kv_head);
  alignas(32) T token[CacheShape::kMostKeySize];
  for (std::size_t i = 0; i < a.tokens; ++i) {
    const std::size_t position = a.first + i, in_block = position % kBlock;
    convert_token(head.keys + i * a.key_stride, s.key_size, token);
    T* to = head.to_keys + (position - in_block) * s.key_size + in_block;
    for (std::size_t d = 0; d < s.key_size; ++d) to[d * kBlock] = token[d];
    convert_token(head.values + i * a.value_stride, s.value_size, head.to_values + position * s.value_pitch());
  }
}

inline void append_ints(const KvAppend& a, std::size_t kv_head) {
  const CacheShape& s = a.cache.shape;
  const Head<std::int8_t> head(a, kv_head);
  const std::size_t key_pitch = s.key_pitch(), value_pitch = s.value_pitch();
  float* key_scales = a.cache.key_scales + kv_head * s.capacity;
  float* value_scales = a.cache.value_scales + kv_head * s.capacity;
  alignas(32) std::int8_t token[CacheShape::kMostValueSize], next[CacheShape::kMostValueSize];
  static_assert(CacheShape::kMostKeySize <= CacheShape::kMostValueSize);
  for (std::size_t i = 0; i < a.tokens; ++i) {
    const std::size_t position = a.first + i, in_block = position % kBlock;
    key_scales[position] = convert_token(head.keys + i * a.key_stride, s.key_size, token);
    std::int8_t* to = head.to_keys + (position - in_block) * key_pitch + 2 * in_block;
    for (std::size_t d = 0; d < key_pitch; d += 2, to += 2 * kBlock) __builtin_memcpy(to, token + d, 2);
  }
  for (std::size_t i = 0; i < a.tokens; ++i) {
    const std::size_t position = a.first + i;
    std::int8_t* to = head.to_values + position / 2 * 2 * value_pitch;
    value_scales[position] = convert_token(head.values + i * a.value_stride, s.value_size, token);
    if (position % 2 != 0 || i + 1 == a.tokens) {  // its neighbour stays as it is
      for (std::size_t d = 0; d < value_pitch; ++d) to[2 * d + position % 2] = token[d];
      continue;
    }
    ++i;
    value_scales[position + 1] = convert_token(head.values + i * a.value_stride, s.value_size, next);
    for (std::size_t d = 0; d < value_pitch; d += 8) {
      const __m128i even = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(token + d));
      const __m128i odd = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(next + d));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * d), _mm_unpacklo_epi8(even, odd));
    }
  }
}

inline void append(const KvAppend& a, std::size_t kv_head) {
  if (a.cache.shape.form == CacheForm::f32) append_floats<float>(a, kv_head);
  if (a.cache.shape.form == CacheForm::f16) append_floats<std::uint16_t>(a, kv_head);
  if (a.cache.shape.form == CacheForm::i8) append_ints(a, kv_head);
}

}  // namespace
}  // namespace ctk::kernels
