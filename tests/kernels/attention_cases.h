// Attention problems for the tests: random ones, running a row on them, and the answer worked out in double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/parallel.h"
#include "core/random.h"
#include "kernels/attention/attention.h"
#include "tests/support/hostile_memory.h"

namespace ctk::test {

using kernels::Attention;
using kernels::AttentionRow;
using kernels::CacheForm;
using kernels::CacheShape;
using kernels::KvAppend;

struct AttentionCase {
  CacheForm form = CacheForm::f32;
  std::size_t kv_heads = 1, group = 1, key_size = 8, value_size = 8;
  std::size_t queries = 1, context = 1;
  bool is_causal = false;
  float scale = 1.0f;
  bool has_mask = false, has_mask_per_head = false;
  std::size_t q_gap = 0, y_gap = 0;
  std::vector<float> q, keys, values, mask;  // [queries, heads, key_size], [context, kv_heads, size] twice, mask

  std::size_t heads() const { return kv_heads * group; }
  std::size_t q_stride() const { return heads() * key_size + q_gap; }
  std::size_t y_stride() const { return heads() * value_size + y_gap; }
  std::size_t past() const { return context - std::min(queries, context); }
  std::string what() const {
    return "form " + std::to_string(static_cast<int>(form)) + " kv " + std::to_string(kv_heads) + " group " +
           std::to_string(group) + " sizes " + std::to_string(key_size) + "," + std::to_string(value_size) +
           " queries " + std::to_string(queries) + " context " + std::to_string(context) + " causal " +
           std::to_string(is_causal) + " mask " + std::to_string(has_mask) + std::to_string(has_mask_per_head);
  }
};

inline std::vector<float> normal_floats(Random& random, std::size_t count) {
  std::vector<float> x(count);
  for (float& v : x) v = static_cast<float>(random.normal());
  return x;
}

// Fills the arrays of `c` with normal noise, the mask with numbers and one -infinity in eight.
inline void fill(Random& random, AttentionCase& c) {
  c.q = normal_floats(random, c.queries == 0 ? 0 : (c.queries - 1) * c.q_stride() + c.heads() * c.key_size);
  c.keys = normal_floats(random, c.context * c.kv_heads * c.key_size);
  c.values = normal_floats(random, c.context * c.kv_heads * c.value_size);
  if (!c.has_mask) return;
  c.mask = normal_floats(random, (c.has_mask_per_head ? c.heads() : 1) * c.queries * c.context);
  for (float& m : c.mask) {
    if (random.below(8) == 0) m = -std::numeric_limits<float>::infinity();
  }
}

// Aligned memory full of NaN patterns, which ends where it may be read no more.
class AlignedArray {
 public:
  explicit AlignedArray(std::size_t bytes) : array_((bytes + 63) / 64 * 64) {
    std::memset(array_.data(), 0xff, (bytes + 63) / 64 * 64);
  }
  char* data() { return array_.data(); }
  float* floats() { return reinterpret_cast<float*>(array_.data()); }

 private:
  FencedArray<char> array_;
};

// A cache with a case's tokens in it, written in two parts.
struct FilledCache {
  FilledCache(const AttentionRow& row, const AttentionCase& c, std::size_t first_part)
      : shape{c.form, c.kv_heads, c.key_size, c.value_size, (c.context + 15) / 16 * 16},
        keys(shape.key_bytes()),
        values(shape.value_bytes()),
        key_scales(shape.scale_count() * sizeof(float)),
        value_scales(shape.scale_count() * sizeof(float)) {
    FencedArray<float> k(c.keys), v(c.values);
    for (const auto& [from, to] : {std::pair{std::size_t{0}, first_part}, std::pair{first_part, c.context}}) {
      KvAppend a;
      a.cache = cache();
      a.first = from;
      a.tokens = to - from;
      a.key_stride = c.kv_heads * c.key_size;
      a.value_stride = c.kv_heads * c.value_size;
      a.keys = k.data() + from * a.key_stride;
      a.values = v.data() + from * a.value_stride;
      kernels::append_kv(row, a);
    }
  }
  kernels::KvCache cache() {
    const bool coded = shape.form == CacheForm::i8;
    return {shape, keys.data(), values.data(), coded ? key_scales.floats() : nullptr,
            coded ? value_scales.floats() : nullptr};
  }

  CacheShape shape;
  AlignedArray keys, values, key_scales, value_scales;
};

// y [queries, y_stride], untouched elements 77.
inline std::vector<float> computed(const AttentionRow& row, const AttentionCase& c, std::size_t first_part = 0) {
  FilledCache cache(row, c, first_part);
  FencedArray<float> q(c.q), mask(c.mask);
  FencedArray<float> y(std::vector<float>(
      (c.queries == 0 ? 0 : c.queries - 1) * c.y_stride() + (c.queries == 0 ? 0 : c.heads() * c.value_size), 77.0f));
  Attention a;
  a.cache = cache.cache();
  a.heads = c.heads();
  a.queries = c.queries;
  a.context = c.context;
  a.is_causal = c.is_causal;
  a.past = c.past();
  a.scale = c.scale;
  a.q = q.data();
  a.q_stride = c.q_stride();
  if (c.has_mask) {
    a.mask = mask.data();
    a.mask_stride = c.context;
    a.mask_head_stride = c.has_mask_per_head ? c.queries * c.context : 0;
  }
  a.y = y.data();
  a.y_stride = c.y_stride();
  AlignedArray scratch(kernels::attention_scratch_bytes(row, a));
  kernels::attention(row, a, scratch.data());
  return y.values();
}

// One line in double: what is asked for and how far the forms may be off, from the header's bounds.
struct ExactLine {
  std::vector<double> y, bound;  // [value_size]
};

inline ExactLine exact_line(const AttentionCase& c, std::size_t query, std::size_t head) {
  const double epsilon = std::numeric_limits<float>::epsilon();
  const std::size_t kv = head / c.group;
  const std::size_t seen = c.is_causal ? std::min(c.past() + query + 1, c.context) : c.context;
  const float* q = c.q.data() + query * c.q_stride() + head * c.key_size;
  const auto top_of = [](const float* x, std::size_t size) {
    double top = 0;
    for (std::size_t d = 0; d < size; ++d) top = std::max(top, std::fabs(static_cast<double>(x[d])));
    return top;
  };
  std::vector<double> scores(seen);
  double largest = -std::numeric_limits<double>::infinity(), magnitude = 0, delta = 0, sum = 0;
  for (std::size_t t = 0; t < seen; ++t) {
    const float* key = c.keys.data() + (t * c.kv_heads + kv) * c.key_size;
    const double top = top_of(key, c.key_size), half_step = top_of(q, c.key_size) * 0x1p-16;
    double size = 0, error = 0;
    for (std::size_t d = 0; d < c.key_size; ++d) {
      scores[t] += static_cast<double>(q[d]) * key[d];
      size += std::fabs(static_cast<double>(q[d]) * key[d]);
      if (c.form == CacheForm::f16) error += std::fabs(q[d]) * (std::fabs(key[d]) * 0x1p-11 + 0x1p-25);
      if (c.form == CacheForm::i8) error += std::fabs(q[d]) * top / 254 + half_step * top;
    }
    scores[t] *= c.scale;
    size *= std::fabs(c.scale);
    if (c.has_mask) {
      const double m = c.mask[(c.has_mask_per_head ? head * c.queries : 0) * c.context + query * c.context + t];
      scores[t] += m;
      if (std::isfinite(m)) size += std::fabs(m);
    }
    magnitude = std::max(magnitude, size);
    delta = std::max(delta, error * std::fabs(c.scale) * 1.0001);
    largest = std::max(largest, scores[t]);
  }
  ExactLine line{std::vector<double>(c.value_size, 0.0), std::vector<double>(c.value_size, 0.0)};
  if (!std::isfinite(largest)) return line;
  for (double& s : scores) sum += s = std::exp(s - largest);
  // Roundings of a score, of its distance to the largest, and of exp.
  delta += (static_cast<double>(c.key_size) + 8) * epsilon * magnitude + 4 * epsilon;
  const double stretch = std::exp(2 * delta);
  std::vector<double> weights_off(1 + seen / Attention::kChunk, 0.0);  // int8, each chunk: largest p * top of values
  for (std::size_t t = 0; t < seen; ++t) {
    const float* value = c.values.data() + (t * c.kv_heads + kv) * c.value_size;
    double& off = weights_off[t / Attention::kChunk];
    off = std::max(off, scores[t] / sum * top_of(value, c.value_size));
  }
  double rounding = 0;
  for (double off : weights_off) rounding += static_cast<double>(Attention::kChunk) * off * 0x1p-16 * 1.0001;
  for (std::size_t d = 0; d < c.value_size; ++d) {
    double size = 0, error = 0;
    for (std::size_t t = 0; t < seen; ++t) {
      const float* value = c.values.data() + (t * c.kv_heads + kv) * c.value_size;
      const double p = scores[t] / sum;
      line.y[d] += p * value[d];
      size += p * std::fabs(value[d]);
      if (c.form == CacheForm::f16) error += p * (std::fabs(value[d]) * 0x1p-11 + 0x1p-25);
      if (c.form == CacheForm::i8) error += p * top_of(value, c.value_size) / 254 * 1.0001;
    }
    if (c.form == CacheForm::i8) error += rounding;
    line.bound[d] = (size + error) * (stretch - 1) + error * stretch +
                    (static_cast<double>(std::min(seen, Attention::kChunk)) + 16) * epsilon * (size + error);
  }
  return line;
}

}  // namespace ctk::test
