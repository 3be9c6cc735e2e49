// RotaryEmbedding: turns pairs (a, b) of each head by the angle of their position: a' = a cos - b sin,
// b' = a sin + b cos.
// In:  X [B, heads, T, size] or [B, T, heads * size] (attribute num_heads); cos_cache and sin_cache [B, T, pairs], or
//      [positions, pairs] with position_ids [B, T] (i64). The first rotary_embedding_dim = 2 * pairs elements of a head
//      turn (0: all); a pair is elements i and i + pairs, or interleaved: 2 i and 2 i + 1.
// Out: Y like X.
#include <algorithm>

#include "graph/ops/heads.h"

namespace ctk::graph {
namespace {

Result<std::int64_t> rotary_size(const Node& node, const Heads& heads) {
  const auto size = static_cast<std::int64_t>(heads.size);
  const std::int64_t wish = node.attributes.get_int("rotary_embedding_dim", 0);
  const std::int64_t rotary = wish == 0 ? size : wish;
  if (rotary < 0 || rotary > size || rotary % 2 != 0) {
    return input_error("rotary_embedding_dim: expected an even number up to the head size " + std::to_string(size) +
                       ", found " + std::to_string(rotary) + ". Correct the attribute.");
  }
  return rotary;
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 3));
  CTK_CHECK(expect_dtype(inputs, 0, "X", {DType::f32}));
  CTK_CHECK(expect_dtype(inputs, 1, "cos_cache", {DType::f32}));
  CTK_CHECK(expect_dtype(inputs, 2, "sin_cache", {DType::f32}));
  CTK_CHECK(expect_dtype(inputs, 3, "position_ids", {DType::i64}));
  const Shape& x = inputs[0].info.shape;
  CTK_TRY(const Heads heads, heads_of("X", x, node.attributes.get_int("num_heads", 0), "num_heads"));
  CTK_TRY(const std::int64_t rotary, rotary_size(node, heads));
  const auto batch = static_cast<std::int64_t>(heads.batch), tokens = static_cast<std::int64_t>(heads.tokens);
  const Shape& cosines = inputs[1].info.shape;
  if (is_present(inputs, 3)) {
    CTK_CHECK(expect_shape("position_ids", inputs[3].info.shape, {batch, tokens}));
    CTK_CHECK(expect_rank("cos_cache", cosines, 2, 2));
    CTK_CHECK(expect_shape("cos_cache", cosines, {cosines[0], rotary / 2}));
  } else {
    CTK_CHECK(expect_shape("cos_cache", cosines, {batch, tokens, rotary / 2}));
  }
  CTK_CHECK(expect_shape("sin_cache", inputs[2].info.shape, cosines));
  return single_output(DType::f32, x);
}

void rotate(const float* x, const float* cosines, const float* sines, std::size_t pairs, bool interleaves, float* y) {
  if (interleaves) {
    for (std::size_t i = 0; i < pairs; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      y[2 * i] = a * cosines[i] - b * sines[i];
      y[2 * i + 1] = a * sines[i] + b * cosines[i];
    }
    return;
  }
  for (std::size_t i = 0; i < pairs; ++i) {
    const float a = x[i], b = x[pairs + i];
    y[i] = a * cosines[i] - b * sines[i];
    y[pairs + i] = a * sines[i] + b * cosines[i];
  }
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  CTK_TRY(const Heads heads, heads_of("X", inputs[0].shape, node.attributes.get_int("num_heads", 0), "num_heads"));
  CTK_TRY(const std::int64_t rotary, rotary_size(node, heads));
  const bool interleaves = node.attributes.get_int("interleaved", 0) != 0;
  const auto turned = static_cast<std::size_t>(rotary);
  const std::size_t pairs = turned / 2;
  const bool has_positions = inputs.size() > 3 && !inputs[3].shape.empty();
  for (std::size_t b = 0; b < heads.batch; ++b) {
    for (std::size_t t = 0; t < heads.tokens; ++t) {
      std::size_t row = b * heads.tokens + t;
      if (has_positions) {
        const std::int64_t position = inputs[3].as<std::int64_t>()[row];
        if (position < 0 || position >= inputs[1].shape[0]) {
          return input_error("position_ids: expected positions below " + std::to_string(inputs[1].shape[0]) +
                             ", the rows of cos_cache, found " + std::to_string(position) + " at token " +
                             std::to_string(t) + ". Feed shorter sequences.");
        }
        row = static_cast<std::size_t>(position);
      }
      const float* cosines = inputs[1].as<float>() + row * pairs;
      const float* sines = inputs[2].as<float>() + row * pairs;
      for (std::size_t head = 0; head < heads.heads; ++head) {
        const float* x = inputs[0].as<float>() + heads.offset(b, head, t);
        float* y = outputs[0].as<float>() + heads.offset(b, head, t);
        rotate(x, cosines, sines, pairs, interleaves, y);
        std::copy(x + turned, x + heads.size, y + turned);
      }
    }
  }
  return {};
}

}  // namespace

const OpRules& rules_RotaryEmbedding() {
  static const OpRules rules = {OpKind::other, 3, 4, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
