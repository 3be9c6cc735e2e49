// Attention: Y = softmax(softcap(scale * Q K') + bias) V for each head, keys and values joined to those of a cache.
// In:  Q, K, V all [B, heads, T, size] or all [B, T, heads * size] (attributes q_num_heads, kv_num_heads), f32; query
//      head h reads the keys and values of head h / (q_num_heads / kv_num_heads). attn_mask (bool: false hides; f32: is
//      added) broadcasts to [B, q_num_heads, Tq, total] but for its last dimension, past which keys are hidden.
//      past_key, past_value [B, kv_num_heads, P, size] stand before K and V; total = P + Tk. nonpad_kv_seqlen [B]
//      (i64): only so many keys count. is_causal: query i sees keys up to i + P, or with nonpad_kv_seqlen up to i +
//      that - Tq.
// Out: Y as Q with V's size; present_key, present_value [B, kv_num_heads, total, size] (optional).
// A query that sees no key gives 0. The softmax runs along with the keys, a chunk of scores at a time, so that no row
// of scores is held; products are summed in eight interleaved partial sums (position mod 8) added in order.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/lane_sums.h"
#include "graph/ops/heads.h"

namespace ctk::graph {
namespace {

enum Input : std::size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonpad };

struct Geometry {
  Heads q, k, v, y;
  std::size_t past = 0, total = 0, group = 1;
  float scale = 1.0f, softcap = 0.0f;
  bool is_causal = false;
};

Error shape_error(const std::string& name, const std::string& expected, const Shape& found) {
  return input_error(name + ": expected " + expected + ", found shape " + to_string(found) + ". Correct the model.");
}

// `shapes`: of the inputs, empty where omitted.
Result<Geometry> geometry_of(const Node& node, std::span<const Shape* const> shapes) {
  const auto shape_of = [&](std::size_t i) -> const Shape& {
    static const Shape kNone;
    return i < shapes.size() && shapes[i] != nullptr ? *shapes[i] : kNone;
  };
  if (shape_of(kQ).size() != shape_of(kK).size()) return shape_error("K", "as many dimensions as Q", shape_of(kK));
  if (shape_of(kQ).size() != shape_of(kV).size()) return shape_error("V", "as many dimensions as Q", shape_of(kV));
  const std::int64_t kv_heads = node.attributes.get_int("kv_num_heads", 0);
  Geometry g;
  CTK_TRY(g.q, heads_of("Q", shape_of(kQ), node.attributes.get_int("q_num_heads", 0), "q_num_heads"));
  CTK_TRY(g.k, heads_of("K", shape_of(kK), kv_heads, "kv_num_heads"));
  CTK_TRY(g.v, heads_of("V", shape_of(kV), kv_heads, "kv_num_heads"));
  if (g.k.batch != g.q.batch || g.k.size != g.q.size)
    return shape_error("K", "the batch and head size of Q", shape_of(kK));
  if (g.v.batch != g.k.batch || g.v.heads != g.k.heads || g.v.tokens != g.k.tokens) {
    return shape_error("V", "the batch, heads and tokens of K", shape_of(kV));
  }
  if (g.k.heads == 0 || g.q.heads % g.k.heads != 0) {
    return input_error("heads: expected those of Q to be a multiple of those of K, found " + std::to_string(g.q.heads) +
                       " and " + std::to_string(g.k.heads) + ". Correct the model.");
  }
  g.group = g.q.heads / g.k.heads;
  const Shape& past = shape_of(kPastKey);
  if (past.size() == 4) g.past = static_cast<std::size_t>(past[2]);
  g.total = g.past + g.k.tokens;
  g.y = g.q;
  g.y.size = g.v.size;
  g.y.batch_stride = g.q.heads * g.q.tokens * g.v.size;
  g.y.token_stride = shape_of(kQ).size() == 4 ? g.v.size : g.q.heads * g.v.size;
  g.y.head_stride = shape_of(kQ).size() == 4 ? g.q.tokens * g.v.size : g.v.size;
  const float scale = node.attributes.get_float("scale", 0.0f);
  const bool has_scale = node.attributes.find("scale") != nullptr;
  g.scale =
      has_scale ? scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(std::max<std::size_t>(g.q.size, 1))));
  g.softcap = node.attributes.get_float("softcap", 0.0f);
  g.is_causal = node.attributes.get_int("is_causal", 0) != 0;
  return g;
}

Status check_attributes(const Node& node) {
  if (const auto mode = node.attributes.get_int("qk_matmul_output_mode", 0); mode != 0) {
    return input_error("qk_matmul_output_mode: expected 0, found " + std::to_string(mode) +
                       ". Export without the output of scores.");
  }
  if (const auto type = node.attributes.get_int("softmax_precision", 1); type != 1) {
    return input_error("softmax_precision: expected 1 (float), found " + std::to_string(type) + ". Export with float.");
  }
  if (!(node.attributes.get_float("softcap", 0.0f) >= 0.0f)) {
    return input_error("softcap: expected 0 or more, found " +
                       std::to_string(node.attributes.get_float("softcap", 0.0f)) + ". Correct the attribute.");
  }
  return {};
}

Status check_cache(std::span<const InferInput> inputs, const Geometry& g) {
  if (is_present(inputs, kPastKey) != is_present(inputs, kPastValue)) {
    return input_error("past_key, past_value: expected both or none, found one. Correct the model.");
  }
  const auto dim = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  if (is_present(inputs, kPastKey)) {
    CTK_CHECK(expect_rank("past_key", inputs[kPastKey].info.shape, 4, 4));
    const std::int64_t past = inputs[kPastKey].info.shape[2];
    CTK_CHECK(
        expect_shape("past_key", inputs[kPastKey].info.shape, {dim(g.k.batch), dim(g.k.heads), past, dim(g.k.size)}));
    CTK_CHECK(expect_shape("past_value", inputs[kPastValue].info.shape,
                           {dim(g.v.batch), dim(g.v.heads), past, dim(g.v.size)}));
  }
  if (is_present(inputs, kNonpad)) {
    if (is_present(inputs, kPastKey)) {
      return input_error("nonpad_kv_seqlen: expected no past_key beside it, found one. Correct the model.");
    }
    CTK_CHECK(expect_shape("nonpad_kv_seqlen", inputs[kNonpad].info.shape, {dim(g.k.batch)}));
  }
  return {};
}

Status check_mask(std::span<const InferInput> inputs, const Geometry& g) {
  if (!is_present(inputs, kMask)) return {};
  const Shape& mask = inputs[kMask].info.shape;
  CTK_CHECK(expect_rank("attn_mask", mask, 1, 4));
  const auto dim = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  Shape full = {dim(g.q.batch), dim(g.q.heads), dim(g.q.tokens), std::min(mask.back(), dim(g.total))};
  return expect_broadcasts_to("attn_mask", mask, full);
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 3));
  for (std::size_t i : {kQ, kK, kV, kPastKey, kPastValue}) {
    static constexpr std::array<std::string_view, 6> kNames = {"Q", "K", "V", "", "past_key", "past_value"};
    CTK_CHECK(expect_dtype(inputs, i, kNames[i], {DType::f32}));
  }
  CTK_CHECK(expect_dtype(inputs, kMask, "attn_mask", {DType::boolean, DType::f32}));
  CTK_CHECK(expect_dtype(inputs, kNonpad, "nonpad_kv_seqlen", {DType::i64}));
  CTK_CHECK(check_attributes(node));
  std::array<const Shape*, 7> shapes{};
  for (std::size_t i = 0; i < inputs.size() && i < shapes.size(); ++i) {
    if (inputs[i].present) shapes[i] = &inputs[i].info.shape;
  }
  CTK_TRY(const Geometry g, geometry_of(node, shapes));
  CTK_CHECK(check_cache(inputs, g));
  CTK_CHECK(check_mask(inputs, g));
  const auto dim = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  Shape y = inputs[kQ].info.shape;
  y.back() = y.size() == 4 ? dim(g.v.size) : dim(g.q.heads * g.v.size);
  CTK_TRY(auto outputs, single_output(DType::f32, std::move(y)));
  for (const Heads& present : {g.k, g.v}) {
    CTK_TRY(auto more, single_output(DType::f32, {dim(g.k.batch), dim(g.k.heads), dim(g.total), dim(present.size)}));
    if (outputs.size() < node.outputs.size()) outputs.push_back(std::move(more[0]));
  }
  return outputs;
}

// Token t of one head, wherever it lies: in the cache or behind it.
struct Tokens {
  const float* past = nullptr;
  const float* current = nullptr;
  std::size_t past_count = 0, past_stride = 0, stride = 0;

  const float* operator[](std::size_t t) const {
    return t < past_count ? past + t * past_stride : current + (t - past_count) * stride;
  }
};

Tokens tokens_of(const TensorView& current, const Heads& heads, const TensorView* past, std::size_t past_count,
                 std::size_t b, std::size_t head) {
  Tokens tokens;
  tokens.current = current.as<float>() + heads.offset(b, head, 0);
  tokens.stride = heads.token_stride;
  tokens.past_count = past_count;
  tokens.past_stride = heads.size;
  if (past_count != 0) tokens.past = past->as<float>() + (b * heads.heads + head) * past_count * heads.size;
  return tokens;
}

// The mask's row of one query; null data: nothing is masked.
struct MaskRow {
  const float* added = nullptr;
  const std::uint8_t* shown = nullptr;
  std::size_t count = 0;
};

MaskRow mask_row(const TensorView& mask, std::size_t b, std::size_t head, std::size_t query) {
  const std::size_t rank = mask.shape.size();
  const std::array<std::size_t, 3> at = {b, head, query};
  MaskRow row;
  row.count = static_cast<std::size_t>(mask.shape[rank - 1]);
  std::size_t offset = 0, stride = row.count;
  for (std::size_t back = 1; back < rank; ++back) {
    const auto size = static_cast<std::size_t>(mask.shape[rank - 1 - back]);
    if (size != 1) offset += at[3 - back] * stride;
    stride *= size;
  }
  if (mask.dtype == DType::boolean)
    row.shown = mask.as<std::uint8_t>() + offset;
  else
    row.added = mask.as<float>() + offset;
  return row;
}

constexpr std::size_t kChunk = 64;
constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Scores of keys first .. first + count of one query.
void score(const Geometry& g, const float* q, const Tokens& keys, const MaskRow& mask, std::size_t first,
           std::size_t count, float* scores) {
  const bool is_masked = mask.added != nullptr || mask.shown != nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t t = first + i;
    if (is_masked && (t >= mask.count || (mask.shown != nullptr && mask.shown[t] == 0))) {
      scores[i] = kHidden;
      continue;
    }
    scores[i] = dot(q, keys[t], g.q.size) * g.scale;
    if (g.softcap > 0.0f) scores[i] = g.softcap * std::tanh(scores[i] / g.softcap);
    if (mask.added != nullptr) scores[i] += mask.added[t];
  }
}

// y [size] = softmax-weighted sum of the first `limit` values.
void attend(const Geometry& g, const float* q, const Tokens& keys, const Tokens& values, const MaskRow& mask,
            std::size_t limit, float* y) {
  const std::size_t size = g.v.size;
  std::fill(y, y + size, 0.0f);
  float largest = kHidden, sum = 0.0f;
  float scores[kChunk];
  for (std::size_t first = 0; first < limit; first += kChunk) {
    const std::size_t count = std::min(kChunk, limit - first);
    score(g, q, keys, mask, first, count, scores);
    float top = largest;
    for (std::size_t i = 0; i < count; ++i) top = scores[i] > top ? scores[i] : top;  // passes NaN by
    const float base = top == kHidden ? 0.0f : top;  // a difference of infinities would be NaN
    const float factor = std::exp(largest - base);
    largest = top;
    sum *= factor;
    if (factor != 1.0f) {
      for (std::size_t d = 0; d < size; ++d) y[d] *= factor;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (scores[i] == kHidden) continue;
      const float weight = std::exp(scores[i] - base);
      const float* value = values[first + i];
      sum += weight;
      for (std::size_t d = 0; d < size; ++d) y[d] += weight * value[d];
    }
  }
  if (sum == 0.0f) return;  // sees nothing
  const float inverse = 1.0f / sum;
  for (std::size_t d = 0; d < size; ++d) y[d] *= inverse;
}

void write_present(const Geometry& g, const Heads& heads, const TensorView& current, const TensorView* past,
                   float* out) {
  for (std::size_t b = 0; b < heads.batch; ++b) {
    for (std::size_t head = 0; head < heads.heads; ++head) {
      const Tokens tokens = tokens_of(current, heads, past, g.past, b, head);
      for (std::size_t t = 0; t < g.total; ++t, out += heads.size) {
        const float* from = tokens[t];
        std::copy(from, from + heads.size, out);
      }
    }
  }
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  std::array<const Shape*, 7> shapes{};
  for (std::size_t i = 0; i < inputs.size() && i < shapes.size(); ++i) shapes[i] = &inputs[i].shape;
  CTK_TRY(const Geometry g, geometry_of(node, shapes));
  const TensorView* past_key = g.past != 0 ? &inputs[kPastKey] : nullptr;
  const TensorView* past_value = g.past != 0 ? &inputs[kPastValue] : nullptr;
  const bool is_masked = inputs.size() > kMask && !inputs[kMask].shape.empty();
  const bool has_nonpad = inputs.size() > kNonpad && !inputs[kNonpad].shape.empty();
  for (std::size_t b = 0; b < g.q.batch; ++b) {
    const auto total = static_cast<std::int64_t>(g.total);
    const std::int64_t counted = has_nonpad ? inputs[kNonpad].as<std::int64_t>()[b] : total;
    const std::int64_t valid = std::clamp<std::int64_t>(counted, 0, total);
    const std::int64_t lead =
        has_nonpad ? valid - static_cast<std::int64_t>(g.q.tokens) : static_cast<std::int64_t>(g.past);
    for (std::size_t head = 0; head < g.q.heads; ++head) {
      const Tokens keys = tokens_of(inputs[kK], g.k, past_key, g.past, b, head / g.group);
      const Tokens values = tokens_of(inputs[kV], g.v, past_value, g.past, b, head / g.group);
      for (std::size_t query = 0; query < g.q.tokens; ++query) {
        std::int64_t limit = valid;
        if (g.is_causal) limit = std::clamp<std::int64_t>(static_cast<std::int64_t>(query) + lead + 1, 0, valid);
        const MaskRow mask = is_masked ? mask_row(inputs[kMask], b, head, query) : MaskRow();
        attend(g, inputs[kQ].as<float>() + g.q.offset(b, head, query), keys, values, mask,
               static_cast<std::size_t>(limit), outputs[0].as<float>() + g.y.offset(b, head, query));
      }
    }
  }
  if (outputs.size() > 1 && outputs[1].data != nullptr) {
    write_present(g, g.k, inputs[kK], past_key, outputs[1].as<float>());
  }
  if (outputs.size() > 2 && outputs[2].data != nullptr) {
    write_present(g, g.v, inputs[kV], past_value, outputs[2].as<float>());
  }
  return {};
}

}  // namespace

const OpRules& rules_Attention() {
  static const OpRules rules = {OpKind::other, 3, 7, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
