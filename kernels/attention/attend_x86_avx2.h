// attend() of the x86 rows. The includer defines IntLines before, the tiles of int8 caches, as int8_x86_avx2.h does.
// Sources with AVX2 only; internal linkage.
#pragma once

#include "kernels/attention/append_x86_avx2.h"
#include "kernels/attention/float_x86_avx2.h"

namespace ctk::kernels {
namespace {

// Scratch: scores float [lines][kChunk]; int8 also weights int16 [lines][kChunk], queries int16 [lines][key_pitch].
inline std::size_t scratch_bytes(const CacheShape& s, std::size_t lines) {
  const std::size_t scores = lines * kChunk * sizeof(float);
  if (s.form != CacheForm::i8) return scores;
  return scores + lines * kChunk * sizeof(std::int16_t) + round_up(lines * s.key_pitch() * sizeof(std::int16_t), 64);
}

// Where a block's lines find what is theirs.
struct BlockLines {
  const float* q[kMostLines];
  const float* mask[kMostLines];  // at the chunk's first key; null without
  std::size_t counts[kMostLines];
};

inline void find_lines(const Attention& a, const AttentionBlock& b, BlockLines& out) {
  const std::size_t group = a.heads / a.cache.shape.kv_heads;
  for (std::size_t l = 0; l < b.lines; ++l) {
    const std::size_t query = (b.first_line + l) / group, head = b.kv_head * group + (b.first_line + l) % group;
    const std::size_t seen = a.past + query + 1;
    const std::size_t last = smaller(a.is_causal ? smaller(seen, a.context) : a.context, b.last_key);
    out.q[l] = a.q + query * a.q_stride + head * a.cache.shape.key_size;
    out.mask[l] =
        a.mask == nullptr ? nullptr : a.mask + query * a.mask_stride + head * a.mask_head_stride + b.first_key;
    out.counts[l] = last > b.first_key ? last - b.first_key : 0;
  }
}

template <class Load>
void attend_floats(const Attention& a, const AttentionBlock& b, const BlockLines& lines, float* states, float* scores) {
  using Element = typename Load::Element;
  const CacheShape& s = a.cache.shape;
  const std::size_t pitch = state_pitch(s), value_pitch = s.value_pitch(), first = b.kv_head * s.capacity + b.first_key;
  FloatLines<Load> tiles{static_cast<const Element*>(a.cache.keys) + first * s.key_size,
                         static_cast<const Element*>(a.cache.values) + first * value_pitch,
                         s.key_size,
                         value_pitch,
                         a.scale,
                         lines.q,
                         lines.counts,
                         scores,
                         states + kStateHead,
                         pitch,
                         0,
                         0};
  const std::size_t keys = b.last_key - b.first_key;
  const std::size_t key_slice = slice_tokens(s.key_size * sizeof(Element));
  for (tiles.begin = 0; tiles.begin < keys; tiles.begin = tiles.end) {
    tiles.end = smaller(tiles.begin + key_slice, keys);
    for_each_tile(b.lines, ScoreTiles<FloatLines<Load>>{tiles});
  }
  for (std::size_t l = 0; l < b.lines; ++l) {
    float* state = states + l * pitch;
    exponentiate(lines.counts[l], scores + l * kChunk, lines.mask[l], state);
    for (std::size_t d = 0; d < value_pitch; d += 8) _mm256_store_ps(state + kStateHead + d, _mm256_setzero_ps());
  }
  const std::size_t value_slice = slice_tokens(value_pitch * sizeof(Element));
  for (tiles.begin = 0; tiles.begin < keys; tiles.begin = tiles.end) {
    tiles.end = smaller(tiles.begin + value_slice, keys);
    for_each_tile(b.lines, WeighTiles<FloatLines<Load>>{tiles});
  }
}

inline void attend_ints(const Attention& a, const AttentionBlock& b, const BlockLines& lines, float* states,
                        float* scores) {
  const CacheShape& s = a.cache.shape;
  const std::size_t pitch = state_pitch(s), key_pitch = s.key_pitch(), value_pitch = s.value_pitch();
  const std::size_t first = b.kv_head * s.capacity + b.first_key;
  std::int16_t* weights = reinterpret_cast<std::int16_t*>(scores + b.lines * kChunk);
  std::int16_t* q = weights + b.lines * kChunk;
  float steps[kMostLines], weight_steps[kMostLines];
  for (std::size_t l = 0; l < b.lines; ++l) {
    steps[l] = round_query(lines.q[l], s.key_size, key_pitch, q + l * key_pitch) * a.scale;
  }
  const IntLines tiles{static_cast<const std::int8_t*>(a.cache.keys) + first * key_pitch,
                       static_cast<const std::int8_t*>(a.cache.values) + first * value_pitch,
                       a.cache.key_scales + first,
                       key_pitch,
                       value_pitch,
                       q,
                       steps,
                       lines.counts,
                       scores,
                       weights,
                       weight_steps,
                       states + kStateHead,
                       pitch};
  for_each_tile(b.lines, ScoreTiles<IntLines>{tiles});
  const std::size_t most = round_up(lines.counts[b.lines - 1], kBlock);
  for (std::size_t l = 0; l < b.lines; ++l) {
    const std::size_t count = lines.counts[l];
    std::int16_t* codes = weights + l * kChunk;
    exponentiate(count, scores + l * kChunk, lines.mask[l], states + l * pitch);
    weight_steps[l] = round_weights(count, scores + l * kChunk, a.cache.value_scales + first, codes);
    for (std::size_t t = round_up(count, kBlock); t < most; ++t) codes[t] = 0;
  }
  for_each_tile(b.lines, WeighTiles<IntLines>{tiles});
}

inline void attend(const Attention& a, const AttentionBlock& b, float* states, void* scratch) {
  BlockLines lines;
  find_lines(a, b, lines);
  float* scores = static_cast<float*>(scratch);
  if (a.cache.shape.form == CacheForm::f32) attend_floats<LoadFloat>(a, b, lines, states, scores);
  if (a.cache.shape.form == CacheForm::f16) attend_floats<LoadHalf>(a, b, lines, states, scores);
  if (a.cache.shape.form == CacheForm::i8) attend_ints(a, b, lines, states, scores);
}

}  // namespace
}  // namespace ctk::kernels
