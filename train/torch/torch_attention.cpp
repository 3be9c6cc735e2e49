#include <cmath>

#include "train/torch/torch_ops.h"

namespace ctk::train {
namespace {

enum Input : std::size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonpad };

// [B, heads, T, size], whichever way the tensor lies.
at::Tensor by_heads(const at::Tensor& x, std::int64_t heads) {
  if (x.dim() == 4) return x;
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

// Which keys each query sees, [B or 1, 1, Tq, total]; undefined when all.
at::Tensor seen_keys(const OpCall& call, std::int64_t queries, std::int64_t total, std::int64_t past) {
  const bool is_causal = call.node.attributes.get_int("is_causal", 0) != 0;
  const bool has_nonpad = call.has(kNonpad);
  if (!is_causal && !has_nonpad) return {};
  const at::Tensor keys = at::arange(total, at::kLong).reshape({1, 1, 1, total});
  at::Tensor seen = at::ones({1, 1, queries, total}, at::kBool);
  at::Tensor lead = at::full({1, 1, 1, 1}, past, at::kLong);
  if (has_nonpad) {
    const at::Tensor valid = at::clamp(call.inputs[kNonpad], 0, total).reshape({-1, 1, 1, 1});
    seen = seen & keys.lt(valid);
    lead = valid - queries;
  }
  if (is_causal) seen = seen & keys.le(at::arange(queries, at::kLong).reshape({1, 1, queries, 1}) + lead);
  return seen;
}

// The mask over all `total` keys: those past its end are hidden.
at::Tensor whole_mask(const at::Tensor& mask, std::int64_t total) {
  if (mask.size(-1) >= total) return mask.narrow(-1, 0, total);
  const std::vector<std::int64_t> pads = {0, total - mask.size(-1)};
  return at::constant_pad_nd(mask, pads,
                             mask.scalar_type() == at::kBool ? 0.0 : -std::numeric_limits<double>::infinity());
}

at::Tensor attend(const OpCall& call, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                  std::int64_t past) {
  const double softcap = call.node.attributes.get_float("softcap", 0.0f);
  const bool is_causal = call.node.attributes.get_int("is_causal", 0) != 0;
  if (call.probabilities == nullptr && softcap == 0 && !call.has(kMask) && !call.has(kNonpad) && past == 0 &&
      (!is_causal || q.size(2) <= k.size(2))) {
    return at::scaled_dot_product_attention(q, k, v, {}, 0.0, is_causal, scale);
  }
  at::Tensor scores = at::matmul(q, k.transpose(2, 3)) * scale;
  if (softcap > 0) scores = at::tanh(scores / softcap) * softcap;
  const double hidden = -std::numeric_limits<double>::infinity();
  if (call.has(kMask)) {
    const at::Tensor mask = whole_mask(call.inputs[kMask], k.size(2));
    scores = mask.scalar_type() == at::kBool ? scores.masked_fill(mask.logical_not(), hidden) : scores + mask;
  }
  const at::Tensor seen = seen_keys(call, q.size(2), k.size(2), past);
  if (seen.defined()) scores = scores.masked_fill(seen.logical_not(), hidden);
  // A query that sees nothing gives 0, where a softmax over nothing would give NaN.
  const at::Tensor sees_nothing = scores.eq(hidden).all(-1, true);
  const at::Tensor weights = at::softmax(scores.masked_fill(sees_nothing, 0.0), -1).masked_fill(sees_nothing, 0.0);
  if (call.probabilities != nullptr) *call.probabilities = weights;
  return at::matmul(weights, v);
}

}  // namespace

Outputs attention(const OpCall& call) {
  const auto& attributes = call.node.attributes;
  const std::int64_t kv_heads = attributes.get_int("kv_num_heads", 0);
  const bool is_flat = call.inputs[kQ].dim() == 3;
  const at::Tensor q = by_heads(call.inputs[kQ], attributes.get_int("q_num_heads", 0));
  at::Tensor k = by_heads(call.inputs[kK], kv_heads), v = by_heads(call.inputs[kV], kv_heads);
  std::int64_t past = 0;
  if (call.has(kPastKey)) {
    past = call.inputs[kPastKey].size(2);
    k = at::cat({call.inputs[kPastKey], k}, 2);
    v = at::cat({call.inputs[kPastValue], v}, 2);
  }
  const double scale = attributes.find("scale") != nullptr
                           ? attributes.get_float("scale", 0.0f)
                           : 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(q.size(3), 1)));
  const std::int64_t group = q.size(1) / k.size(1);
  const auto shared = [&](const at::Tensor& x) { return group == 1 ? x : x.repeat_interleave(group, 1); };
  at::Tensor y = attend(call, q, shared(k), shared(v), scale, past);
  if (is_flat) y = y.transpose(1, 2).reshape(call.shape());
  Outputs outputs = {y};
  if (call.outputs.size() > 1) outputs.push_back(k);
  if (call.outputs.size() > 2) outputs.push_back(v);
  return outputs;
}

at::Tensor rotary_embedding(const OpCall& call) {
  const auto& attributes = call.node.attributes;
  const at::Tensor x = by_heads(call.inputs[0], std::max<std::int64_t>(attributes.get_int("num_heads", 0), 1));
  at::Tensor cosines = call.inputs[1], sines = call.inputs[2];
  if (call.has(3)) {
    const at::Tensor positions = call.inputs[3].reshape(-1);
    const std::vector<std::int64_t> shape = {call.inputs[3].size(0), call.inputs[3].size(1), cosines.size(1)};
    cosines = cosines.index_select(0, positions).reshape(shape);
    sines = sines.index_select(0, positions).reshape(shape);
  }
  cosines = cosines.unsqueeze(1);  // the same for every head
  sines = sines.unsqueeze(1);
  const std::int64_t pairs = cosines.size(-1), rotary = 2 * pairs;
  const at::Tensor turned = x.narrow(3, 0, rotary);
  at::Tensor y;
  if (attributes.get_int("interleaved", 0) != 0) {
    const at::Tensor halves = turned.reshape({x.size(0), x.size(1), x.size(2), pairs, 2});
    const at::Tensor a = halves.select(4, 0), b = halves.select(4, 1);
    y = at::stack({a * cosines - b * sines, a * sines + b * cosines}, 4).reshape(turned.sizes());
  } else {
    const at::Tensor a = turned.narrow(3, 0, pairs), b = turned.narrow(3, pairs, pairs);
    y = at::cat({a * cosines - b * sines, a * sines + b * cosines}, 3);
  }
  if (rotary < x.size(3)) y = at::cat({y, x.narrow(3, rotary, x.size(3) - rotary)}, 3);
  return call.inputs[0].dim() == 4 ? y : y.transpose(1, 2).reshape(call.shape());
}

}  // namespace ctk::train
