// The reference: one line after the other, in the order the header states.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/exp.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kBlock = CacheShape::kBlock;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

float exp_of(float x) {
  if (x < kExpLow) return 0.0f;
  if (std::isnan(x)) return x;
  const float n = std::nearbyint(x * kLog2E);
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  float p = kExpC0;
  for (float c : {kExpC1, kExpC2, kExpC3, kExpC4, kExpC5}) p = std::fma(p, r, c);
  p = std::fma(p, r * r, r) + 1.0f;
  return p * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}

// ---- the cache -----------------------------------------------------------------------------------------------------

std::size_t key_at(const CacheShape& s, std::size_t kv_head, std::size_t token, std::size_t d) {
  const std::size_t block = (kv_head * s.capacity + token / kBlock * kBlock) * s.key_pitch(), t = token % kBlock;
  return block + (s.form == CacheForm::i8 ? (d / 2 * kBlock + t) * 2 + d % 2 : d * kBlock + t);
}

std::size_t value_at(const CacheShape& s, std::size_t kv_head, std::size_t token, std::size_t d) {
  const std::size_t head = kv_head * s.capacity * s.value_pitch();
  if (s.form == CacheForm::i8) return head + (token / 2 * s.value_pitch() + d) * 2 + token % 2;
  return head + token * s.value_pitch() + d;
}

float element(const CacheShape& s, const void* data, std::size_t at) {
  if (s.form == CacheForm::f32) return static_cast<const float*>(data)[at];
  return half_to_float(static_cast<const std::uint16_t*>(data)[at]);
}

int code(const void* data, std::size_t at) {
  return static_cast<const std::int8_t*>(data)[at];
}

struct Rounding {
  float step, inverse;  // NaN and 0: something is not finite; 0 and 0: too small
};

Rounding rounding_of(const float* x, std::size_t count, float most) {
  float top = 0.0f;
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i])) return {kNaN, 0.0f};
    top = std::max(top, std::fabs(x[i]));
  }
  if (top < 0x1p-100f) return {0.0f, 0.0f};
  return {top / most, most / top};
}

int rounded(float x, Rounding rounding) {
  return rounding.inverse == 0.0f ? 0 : static_cast<int>(std::nearbyint(x * rounding.inverse));
}

// One token of one head: `size` elements, then zeros up to `pitch`; at(d) says where. scale_at: where its scale goes.
template <class At>
void write_token(CacheForm form, const float* x, std::size_t size, std::size_t pitch, void* data, float* scales,
                 std::size_t scale_at, At at) {
  if (form == CacheForm::i8) {
    const Rounding rounding = rounding_of(x, size, 127.0f);
    scales[scale_at] = rounding.step;
    std::int8_t* codes = static_cast<std::int8_t*>(data);
    for (std::size_t d = 0; d < pitch; ++d) {
      codes[at(d)] = static_cast<std::int8_t>(d < size ? rounded(x[d], rounding) : 0);
    }
    return;
  }
  for (std::size_t d = 0; d < pitch; ++d) {
    const float value = d < size ? x[d] : 0.0f;
    if (form == CacheForm::f32) {
      static_cast<float*>(data)[at(d)] = value;
    } else {
      static_cast<std::uint16_t*>(data)[at(d)] = float_to_half(value);
    }
  }
}

void append(const KvAppend& a, std::size_t kv_head) {
  const CacheShape& s = a.cache.shape;
  for (std::size_t i = 0; i < a.tokens; ++i) {
    const std::size_t token = a.first + i, scale = kv_head * s.capacity + token;
    write_token(s.form, a.keys + i * a.key_stride + kv_head * s.key_size, s.key_size, s.key_pitch(), a.cache.keys,
                a.cache.key_scales, scale, [&](std::size_t d) { return key_at(s, kv_head, token, d); });
    write_token(s.form, a.values + i * a.value_stride + kv_head * s.value_size, s.value_size, s.value_pitch(),
                a.cache.values, a.cache.value_scales, scale,
                [&](std::size_t d) { return value_at(s, kv_head, token, d); });
  }
}

// ---- one line against one chunk ------------------------------------------------------------------------------------

// Scratch: scores, then weights, then the rounded query.
struct Scratch {
  float scores[Attention::kChunk];
  float weights[Attention::kChunk];
  std::int16_t query[CacheShape::kMostKeySize];
};

std::size_t scratch_bytes(const CacheShape&, std::size_t) {
  return sizeof(Scratch);
}

// scores[i] of keys first + i, without mask.
void score(const Attention& a, std::size_t kv_head, const float* q, std::size_t first, std::size_t count, Scratch& x) {
  const CacheShape& s = a.cache.shape;
  if (s.form != CacheForm::i8) {
    for (std::size_t i = 0; i < count; ++i) {
      float dot = 0.0f;
      for (std::size_t d = 0; d < s.key_size; ++d) {
        dot = std::fma(q[d], element(s, a.cache.keys, key_at(s, kv_head, first + i, d)), dot);
      }
      x.scores[i] = dot * a.scale;
    }
    return;
  }
  const Rounding rounding = rounding_of(q, s.key_size, 32767.0f);
  for (std::size_t d = 0; d < s.key_size; ++d) x.query[d] = static_cast<std::int16_t>(rounded(q[d], rounding));
  const float step = rounding.step * a.scale;
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t dot = 0;
    for (std::size_t d = 0; d < s.key_size; ++d) {
      dot += x.query[d] * code(a.cache.keys, key_at(s, kv_head, first + i, d));
    }
    x.scores[i] = static_cast<float>(dot) * (step * a.cache.key_scales[kv_head * s.capacity + first + i]);
  }
}

// scores -> exp(scores - m). Writes m and the sum.
void exponentiate(std::size_t count, float* scores, float* state) {
  float m = -kInfinity;
  for (std::size_t i = 0; i < count; ++i) m = scores[i] > m ? scores[i] : m;
  const float base = m == -kInfinity ? 0.0f : m;
  float lanes[16] = {};
  for (std::size_t i = 0; i < count; ++i) {
    scores[i] = exp_of(scores[i] - base);
    lanes[i % 16] += scores[i];
  }
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  state[0] = m;
  state[1] = lanes[0];
}

void weigh(const Attention& a, std::size_t kv_head, std::size_t first, std::size_t count, Scratch& x, float* acc) {
  const CacheShape& s = a.cache.shape;
  if (s.form != CacheForm::i8) {
    for (std::size_t d = 0; d < s.value_pitch(); ++d) {
      acc[d] = 0.0f;
      for (std::size_t i = 0; i < count; ++i) {
        acc[d] = std::fma(x.scores[i], element(s, a.cache.values, value_at(s, kv_head, first + i, d)), acc[d]);
      }
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    x.weights[i] = x.scores[i] * a.cache.value_scales[kv_head * s.capacity + first + i];
  }
  const Rounding rounding = rounding_of(x.weights, count, 32767.0f);
  for (std::size_t d = 0; d < s.value_pitch(); ++d) {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += rounded(x.weights[i], rounding) * code(a.cache.values, value_at(s, kv_head, first + i, d));
    }
    acc[d] = static_cast<float>(sum) * rounding.step;
  }
}

std::size_t pitch_of(const CacheShape& s) {
  return (kStateHead + s.value_pitch() + 15) / 16 * 16;
}

void attend(const Attention& a, const AttentionBlock& b, float* states, void* scratch) {
  const CacheShape& s = a.cache.shape;
  Scratch& x = *static_cast<Scratch*>(scratch);
  for (std::size_t l = 0; l < b.lines; ++l) {
    const std::size_t line = b.first_line + l, query = line / a.group(),
                      head = b.kv_head * a.group() + line % a.group();
    const std::size_t last = std::min(a.limit(line), b.last_key), count = last > b.first_key ? last - b.first_key : 0;
    float* state = states + l * pitch_of(s);
    score(a, b.kv_head, a.q + query * a.q_stride + head * s.key_size, b.first_key, count, x);
    if (a.mask != nullptr) {
      const float* mask = a.mask + query * a.mask_stride + head * a.mask_head_stride + b.first_key;
      for (std::size_t i = 0; i < count; ++i) x.scores[i] += mask[i];
    }
    exponentiate(count, x.scores, state);
    weigh(a, b.kv_head, b.first_key, count, x, state + kStateHead);
  }
}

void join(const CacheShape& s, std::size_t lines, float* states, const float* next) {
  for (std::size_t l = 0; l < lines; ++l, states += pitch_of(s), next += pitch_of(s)) {
    if (next[1] == 0.0f) continue;
    if (states[1] == 0.0f) {
      std::copy_n(next, pitch_of(s), states);
      continue;
    }
    const float m = next[0] > states[0] ? next[0] : states[0];
    const float base = m == -kInfinity ? 0.0f : m;
    const float old_weight = exp_of(states[0] - base), new_weight = exp_of(next[0] - base);
    states[0] = m;
    states[1] = std::fma(states[1], old_weight, next[1] * new_weight);
    for (std::size_t d = kStateHead; d < kStateHead + s.value_pitch(); ++d) {
      states[d] = std::fma(states[d], old_weight, next[d] * new_weight);
    }
  }
}

void finish(const Attention& a, const AttentionBlock& b, const float* states) {
  const CacheShape& s = a.cache.shape;
  for (std::size_t l = 0; l < b.lines; ++l, states += pitch_of(s)) {
    const std::size_t line = b.first_line + l, head = b.kv_head * a.group() + line % a.group();
    float* y = a.y + line / a.group() * a.y_stride + head * s.value_size;
    const float inverse = 1.0f / states[1];
    for (std::size_t d = 0; d < s.value_size; ++d) {
      y[d] = states[1] == 0.0f ? 0.0f : states[kStateHead + d] * inverse;
    }
  }
}

}  // namespace

extern const AttentionRow attention_scalar;
constinit const AttentionRow attention_scalar{
    .isa = Isa::scalar,
    .name = "attention_scalar",
    .append = append,
    .scratch_bytes = scratch_bytes,
    .attend = attend,
    .join = join,
    .finish = finish,
};

}  // namespace ctk::kernels
