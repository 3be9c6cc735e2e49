// attention: y = softmax(scale * q . K + mask) . V for one layer against a cache of keys and values; the core of ONNX
// Attention (opset 23 and 24, without softcap). `heads` query heads share the `kv_heads` heads of the cache, `group` =
// heads / kv_heads each. One query is decoding, many are prefill; a group shares each read of the cache.
//
// Lines. What one head of the cache serves is taken as lines: line l is query l / group, head l % group of the group.
// A line sees the first `limit` keys: all `context` ones, or causal: past + query + 1 of them, at most `context`.
//
// Cache, the same for every row. Elements are float, IEEE half or int8; each array starts on 64 bytes. Keys stand in
// blocks of 16 tokens with the head's elements outside, so that 16 scores come in one order and without adding across
// lanes; values stand token by token, as the weighted sum takes them.
//   keys    [kv_heads][capacity / 16][key_size][16]
//   values  [kv_heads][capacity][value_pitch]
// int8, two neighbours beside each other, which are what a multiply-add of pairs takes:
//   keys    [kv_heads][capacity / 16][key_pitch / 2][16 tokens][2 elements]
//   values  [kv_heads][capacity / 2][value_pitch][2 tokens]
// capacity is a multiple of 16; key_pitch is key_size, int8: rounded up to 2; value_pitch is value_size rounded up to
// 8. Elements past the sizes are 0. Only appended tokens count, though bytes of the rest of their 16 are read.
// int8: element = code * scale, one scale for each token and head. top = largest magnitude; not finite: scale = NaN,
// codes 0; below 2^-100: scale = 0, codes 0; else scale = top / 127, code = nearbyint(x * (127 / top)), ties to even.
// So |x - element| <= top / 254 * (1 + 2^-15). Half: nearest, ties to even.
//
// Scores, float32:
//   float, half: dot = one fused multiply-add per element, ascending, from 0;  s[t] = dot * scale
//   int8: q16 = nearbyint(q * (32767 / top)), step = top / 32767, top as above; dot is exact in int32;
//         s[t] = float32(dot) * ((step * scale) * key_scale[t])
//   then s[t] += mask[t], and s[t] = -infinity for t >= limit.
// Softmax, in chunks of kChunk keys, so that no more scores than that are ever held of a line:
//   m = largest s[t] that is a number, 0 where that is -infinity;  p[t] = exp(s[t] - m)
//   sum: 16 lanes, lane j of tokens j, 16 + j, ... ascending; then lanes j + 8 onto j, j + 4 onto j, j + 2, j + 1
//   float, half: acc[d] = one fused multiply-add of p[t] and V[t,d] per t < limit, ascending, from 0
//   int8: w[t] = p[t] * value_scale[t]; top of the chunk's w as above (not finite: acc = NaN; below 2^-100: acc = 0);
//         w16 = nearbyint(w * (32767 / top)); dot = sum of w16[t] * code[t,d], exact in int32;
//         acc[d] = float32(dot) * (top / 32767)
// Chunks join in ascending order; one whose sum is 0 (nothing to be seen) is left out, the first other one is copied:
//   M' = max(M, m), a = exp(M - M'), b = exp(m - M'), SUM = fma(SUM, a, sum * b), ACC[d] = fma(ACC[d], a, acc[d] * b)
// y[d] = ACC[d] * (1 / SUM), and 0 for a line that sees nothing: all keys masked, or none there.
//
// exp(x), x <= 0: 0 below -87; n = nearbyint(x * log2 e); r = fma(n, -ln2_low, fma(n, -ln2_high, x)); polynomial of
// degree 7 by Horner with fused multiply-adds; times 2^n. Within 2 units in the last place (kernels/attention/exp.h).
//
// All orders are fixed and no line depends on another, so every row, every thread count and every split of the queries
// over calls gives the same bits. A score that is NaN or +infinity makes its line NaN. A value that is not finite makes
// what it goes into not finite, even with a weight of 0, in the lines whose limit lets them see it.
//
// Error of int8 beside that of the cache: q16 moves a score by at most 2^-16 * key_size * top(q) * top(k) * scale, w16
// an element of acc by at most 2^-16 * kChunk * top(w) * 127: half a step each.
//
// Bounds: key_size in 1..512, value_size in 1..4096.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cpu_isa.h"

namespace ctk::kernels {

enum class CacheForm { f32, f16, i8 };

struct CacheShape {
  CacheForm form = CacheForm::f32;
  std::size_t kv_heads = 0, key_size = 0, value_size = 0;
  std::size_t capacity = 0;  // tokens, a multiple of kBlock

  static constexpr std::size_t kBlock = 16, kMostKeySize = 512, kMostValueSize = 4096;

  std::size_t element_bytes() const { return form == CacheForm::f32 ? 4 : form == CacheForm::f16 ? 2 : 1; }
  std::size_t key_pitch() const { return form == CacheForm::i8 ? (key_size + 1) / 2 * 2 : key_size; }
  std::size_t value_pitch() const { return (value_size + 7) / 8 * 8; }
  // Bytes of one head of the cache, and of all of it.
  std::size_t head_key_bytes() const { return capacity * key_pitch() * element_bytes(); }
  std::size_t head_value_bytes() const { return capacity * value_pitch() * element_bytes(); }
  std::size_t key_bytes() const { return kv_heads * head_key_bytes(); }
  std::size_t value_bytes() const { return kv_heads * head_value_bytes(); }
  std::size_t scale_count() const { return form == CacheForm::i8 ? kv_heads * capacity : 0; }
  bool is_supported() const {
    return key_size >= 1 && key_size <= kMostKeySize && value_size >= 1 && value_size <= kMostValueSize &&
           capacity % kBlock == 0;
  }
};

struct KvCache {
  CacheShape shape;
  void* keys = nullptr;           // key_bytes(), on 64 bytes, as `values`
  void* values = nullptr;         // value_bytes()
  float* key_scales = nullptr;    // int8: [kv_heads, capacity]
  float* value_scales = nullptr;  // the same
};

// Tokens to write: of head h, token i: key_size floats at keys + i * key_stride + h * key_size, and values likewise.
struct KvAppend {
  KvCache cache;
  std::size_t first = 0, tokens = 0;  // into positions [first, first + tokens), within the capacity
  const float* keys = nullptr;
  std::size_t key_stride = 0;  // >= kv_heads * key_size
  const float* values = nullptr;
  std::size_t value_stride = 0;
};

struct Attention {
  KvCache cache;
  std::size_t heads = 0;  // a multiple of kv_heads
  std::size_t queries = 0;
  std::size_t context = 0;  // appended tokens, <= capacity
  bool is_causal = false;
  std::size_t past = 0;  // causal: the first query's position
  float scale = 1.0f;
  const float* q = nullptr;  // head h of query i: key_size floats at q + i * q_stride + h * key_size
  std::size_t q_stride = 0;
  const float* mask =
      nullptr;  // or null. Of query i and head h: [context] at mask + i * mask_stride + h * mask_head_stride
  std::size_t mask_stride = 0, mask_head_stride = 0;
  float* y = nullptr;  // head h of query i: value_size floats at y + i * y_stride + h * value_size; must not overlap q
  std::size_t y_stride = 0;

  static constexpr std::size_t kChunk = 256;

  std::size_t group() const { return heads / cache.shape.kv_heads; }
  std::size_t lines() const { return queries * group(); }
  std::size_t limit(std::size_t line) const {
    const std::size_t seen = past + line / group() + 1;
    return is_causal && seen < context ? seen : context;
  }
};

// Some lines of one head of the cache against one chunk of its keys.
struct AttentionBlock {
  std::size_t kv_head = 0;
  std::size_t first_line = 0, lines = 0;    // lines in 1..kMostLines
  std::size_t first_key = 0, last_key = 0;  // first_key a multiple of kChunk, last_key <= first_key + kChunk

  static constexpr std::size_t kMostLines = 48;
};

// What a line has gathered: m, sum, then from float 16 on acc [value_pitch]. state_floats() apart, on 64 bytes.
inline constexpr std::size_t kStateHead = 16;

// One instruction set's implementation. Scratch and states are on 64 bytes.
struct AttentionRow {
  Isa isa;
  const char* name;
  void (*append)(const KvAppend& a, std::size_t kv_head);
  std::size_t (*scratch_bytes)(const CacheShape& shape, std::size_t lines);  // for attend()
  void (*attend)(const Attention& a, const AttentionBlock& b, float* states, void* scratch);
  // Joins the next chunk's states of `lines` lines.
  void (*join)(const CacheShape& shape, std::size_t lines, float* states, const float* next);
  // Writes y of the block's lines (its keys do not matter).
  void (*finish)(const Attention& a, const AttentionBlock& b, const float* states);
};

std::span<const AttentionRow> attention_rows();

// Writes tokens into the cache, split over threads by heads. Allocates nothing.
void append_kv(const AttentionRow& row, const KvAppend& a);

// Scratch attention() needs with the current number of threads, whatever pointers, strides, mask and past.
std::size_t attention_scratch_bytes(const AttentionRow& row, const Attention& a);
// Splits one layer over threads: few lines by chunks of keys, many by blocks of lines. Allocates nothing.
void attention(const AttentionRow& row, const Attention& a, void* scratch);

}  // namespace ctk::kernels
