// RotaryEmbedding and Attention. Attention's probabilities are computed again, a row at a time:
//   P = softmax(scale Q K'), dV = P' G, dP = G V', dS = P (dP - sum(P dP)), dQ = scale dS K, dK = scale dS' Q.
// Cost: six products of the size of Q K' in place of the forward run's two; memory: two rows of scores a thread.
// Heads of keys are shared out to the threads, with all query heads that read them, in order.
#include <algorithm>
#include <cmath>
#include <vector>

#include "calibrate/reverse/rules.h"
#include "core/lane_sums.h"
#include "core/parallel.h"
#include "graph/ops/heads.h"

namespace ctk::calibrate {
namespace {

using graph::Heads;

void add_scaled(float factor, const float* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

struct AttentionHeads {
  Heads q, k, v, y;
  float scale = 1.0f;
  bool is_causal = false;
};

Result<AttentionHeads> heads_of_call(const ReverseCall& call) {
  const auto& attributes = call.node.attributes;
  const bool has_more = std::any_of(call.inputs.begin() + 3, call.inputs.end(),
                                    [](const TensorView& v) { return v.data != nullptr || !v.shape.empty(); });
  if (has_more || attributes.get_float("softcap", 0.0f) > 0.0f) {
    return input_error("Attention: expected neither mask, cache nor softcap, found one. " +
                       std::string("Choose a sensitivity metric without gradients, such as kl."));
  }
  AttentionHeads h;
  const std::int64_t kv_heads = attributes.get_int("kv_num_heads", 0);
  CTK_TRY(h.q, graph::heads_of("Q", call.inputs[0].shape, attributes.get_int("q_num_heads", 0), "q_num_heads"));
  CTK_TRY(h.k, graph::heads_of("K", call.inputs[1].shape, kv_heads, "kv_num_heads"));
  CTK_TRY(h.v, graph::heads_of("V", call.inputs[2].shape, kv_heads, "kv_num_heads"));
  CTK_TRY(h.y,
          graph::heads_of("Y", call.output_gradients[0].shape, static_cast<std::int64_t>(h.q.heads), "q_num_heads"));
  h.scale = attributes.find("scale") != nullptr ? attributes.get_float("scale", 0.0f)
                                                : static_cast<float>(1.0 / std::sqrt(static_cast<double>(h.q.size)));
  h.is_causal = attributes.get_int("is_causal", 0) != 0;
  return h;
}

// One query row against `limit` keys.
struct Row {
  const float *q, *g;
  float* dq;
};

void go_back(const AttentionHeads& h, const ReverseCall& call, const Row& row, std::size_t limit, std::size_t keys,
             std::size_t values, std::vector<float>& p, std::vector<float>& ds) {
  const float *k = call.inputs[1].as<float>() + keys, *v = call.inputs[2].as<float>() + values;
  float largest = -INFINITY;
  for (std::size_t j = 0; j < limit; ++j) {
    p[j] = h.scale * dot(row.q, k + j * h.k.token_stride, h.q.size);
    largest = std::max(largest, p[j]);
  }
  double sum = 0;
  for (std::size_t j = 0; j < limit; ++j) {
    p[j] = std::exp(p[j] - largest);
    sum += static_cast<double>(p[j]);
  }
  double mean = 0;
  const auto inverse = static_cast<float>(1.0 / sum);
  for (std::size_t j = 0; j < limit; ++j) {
    p[j] *= inverse;
    ds[j] = dot(row.g, v + j * h.v.token_stride, h.v.size);
    mean += static_cast<double>(p[j]) * static_cast<double>(ds[j]);
  }
  float* dk = call.input_gradients[1].as<float>();
  float* dv = call.input_gradients[2].as<float>();
  for (std::size_t j = 0; j < limit; ++j) {
    const float slope = h.scale * p[j] * (ds[j] - static_cast<float>(mean));
    if (row.dq != nullptr) add_scaled(slope, k + j * h.k.token_stride, h.q.size, row.dq);
    if (dk != nullptr) add_scaled(slope, row.q, h.q.size, dk + keys + j * h.k.token_stride);
    if (dv != nullptr) add_scaled(p[j], row.g, h.v.size, dv + values + j * h.v.token_stride);
  }
}

}  // namespace

Status reverse_attention(const ReverseCall& call) {
  if (call.output_gradients[0].data == nullptr) return {};
  CTK_TRY(const AttentionHeads h, heads_of_call(call));
  const std::size_t group = h.q.heads / h.k.heads, count = h.k.tokens;
  float* dq = call.input_gradients[0].as<float>();
  parallel_for(h.q.batch * h.k.heads, 1, [&](std::size_t begin, std::size_t end) {
    std::vector<float> p(count), ds(count);
    for (std::size_t work = begin; work < end; ++work) {
      const std::size_t b = work / h.k.heads, head = work % h.k.heads;
      for (std::size_t i = head * group; i < (head + 1) * group; ++i) {
        for (std::size_t t = 0; t < h.q.tokens; ++t) {
          const std::size_t at = h.q.offset(b, i, t);
          const Row row = {call.inputs[0].as<float>() + at, call.output_gradients[0].as<float>() + h.y.offset(b, i, t),
                           dq == nullptr ? nullptr : dq + at};
          const std::size_t limit = h.is_causal ? std::min(count, t + 1) : count;
          go_back(h, call, row, limit, h.k.offset(b, head, 0), h.v.offset(b, head, 0), p, ds);
        }
      }
    }
  });
  return {};
}

// The transpose of a turn is the turn back.
Status reverse_rotary_embedding(const ReverseCall& call) {
  CTK_CHECK(expect_not_wanted(call, 1, "cos_cache"));
  CTK_CHECK(expect_not_wanted(call, 2, "sin_cache"));
  if (call.input_gradients[0].data == nullptr) return {};
  const auto& attributes = call.node.attributes;
  CTK_TRY(const Heads h, graph::heads_of("X", call.inputs[0].shape, attributes.get_int("num_heads", 0), "num_heads"));
  const std::int64_t wish = attributes.get_int("rotary_embedding_dim", 0);
  const std::size_t turned = wish == 0 ? h.size : static_cast<std::size_t>(wish), pairs = turned / 2;
  const bool interleaves = attributes.get_int("interleaved", 0) != 0;
  const bool has_positions = call.inputs.size() > 3 && call.inputs[3].data != nullptr;
  for (std::size_t b = 0; b < h.batch; ++b) {
    for (std::size_t t = 0; t < h.tokens; ++t) {
      std::size_t row = b * h.tokens + t;
      if (has_positions) row = static_cast<std::size_t>(call.inputs[3].as<std::int64_t>()[row]);
      const float *cosines = call.inputs[1].as<float>() + row * pairs,
                  *sines = call.inputs[2].as<float>() + row * pairs;
      for (std::size_t head = 0; head < h.heads; ++head) {
        const float* g = call.output_gradients[0].as<float>() + h.offset(b, head, t);
        float* dx = call.input_gradients[0].as<float>() + h.offset(b, head, t);
        for (std::size_t i = 0; i < pairs; ++i) {
          const std::size_t one = interleaves ? 2 * i : i, two = interleaves ? 2 * i + 1 : pairs + i;
          dx[one] += g[one] * cosines[i] + g[two] * sines[i];
          dx[two] += g[two] * cosines[i] - g[one] * sines[i];
        }
        for (std::size_t i = turned; i < h.size; ++i) dx[i] += g[i];
      }
    }
  }
  return {};
}

}  // namespace ctk::calibrate
