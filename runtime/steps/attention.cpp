// Attention steps: one layer against keys and values written into a cache. That cache lives in the step's scratch, or,
// where a text is read on (PlanOptions::caches), outlives the run. Serves Attention of three dimensions without cache,
// mask or softcap, which is what checkpoints are read into; other forms run by their float evaluation.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/select.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::Op;
using graph::ValueId;

constexpr std::size_t kLine = 64;

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

class AttentionStep final : public Step {
 public:
  const kernels::AttentionRow* kernel = nullptr;
  kernels::Attention shape;  // of one batch, pointers missing
  std::size_t batch = 1;

  std::size_t key_bytes() const { return round_up(shape.cache.shape.key_bytes(), kLine); }
  std::size_t value_bytes() const { return round_up(shape.cache.shape.value_bytes(), kLine); }

  Status run(const RunContext& context) override {
    const kernels::CacheShape& cache = shape.cache.shape;
    kernels::Attention a = shape;
    a.cache.keys = context.scratch;
    a.cache.values = context.scratch + key_bytes();
    kernels::KvAppend append;
    append.cache = a.cache;
    append.tokens = a.context;
    append.key_stride = cache.kv_heads * cache.key_size;
    append.value_stride = cache.kv_heads * cache.value_size;
    for (std::size_t b = 0; b < batch; ++b) {
      append.keys = context.at<const float>(reads[1]) + b * a.context * append.key_stride;
      append.values = context.at<const float>(reads[2]) + b * a.context * append.value_stride;
      kernels::append_kv(*kernel, append);
      a.q = context.at<const float>(reads[0]) + b * a.queries * a.q_stride;
      a.y = context.at<float>(writes[0]) + b * a.queries * a.y_stride;
      kernels::attention(*kernel, a, context.scratch + key_bytes() + value_bytes());
    }
    return {};
  }
};

// The tokens of a run behind those that stand in a cache already.
class CachedAttentionStep final : public Step {
 public:
  const kernels::AttentionRow* kernel = nullptr;
  kernels::Attention shape;  // pointers, past and context missing
  std::shared_ptr<KvCaches> caches;

  Status run(const RunContext& context) override {
    const kernels::CacheShape& cache = shape.cache.shape;
    if (caches->tokens + shape.queries > cache.capacity) return internal_error("more tokens than the cache holds");
    kernels::KvAppend append;
    append.cache = shape.cache;
    append.first = caches->tokens;
    append.tokens = shape.queries;
    append.keys = context.at<const float>(reads[1]);
    append.values = context.at<const float>(reads[2]);
    append.key_stride = cache.kv_heads * cache.key_size;
    append.value_stride = cache.kv_heads * cache.value_size;
    kernels::append_kv(*kernel, append);
    kernels::Attention a = shape;
    a.past = caches->tokens;
    a.context = caches->tokens + shape.queries;
    a.q = context.at<const float>(reads[0]);
    a.y = context.at<float>(writes[0]);
    kernels::attention(*kernel, a, context.scratch);
    return {};
  }
};

// Few lines are cut by keys where there are many of them, else by lines: memory for either.
std::size_t most_scratch(const kernels::AttentionRow& row, kernels::Attention a) {
  a.context = a.cache.shape.capacity;
  const std::size_t longest = kernels::attention_scratch_bytes(row, a);
  a.context = std::min(a.cache.shape.capacity, kernels::Attention::kChunk);
  return std::max(longest, kernels::attention_scratch_bytes(row, a));
}

Result<std::unique_ptr<Step>> cached_step(const PlanBuilder& builder, graph::NodeId id, const AttentionStep& whole) {
  const kernels::CacheShape& cache = whole.shape.cache.shape;
  auto step = std::make_unique<CachedAttentionStep>();
  step->kernel = whole.kernel;
  step->shape = whole.shape;
  step->caches = builder.options().caches;
  CTK_TRY(step->shape.cache, step->caches->of(id, cache.kv_heads, cache.key_size, cache.value_size));
  step->scratch_bytes = most_scratch(*step->kernel, step->shape);
  return std::unique_ptr<Step>(std::move(step));
}

// Null where the kernel does not serve the node.
std::unique_ptr<AttentionStep> served_step(const PlanBuilder& builder, const Node& node) {
  const auto is_given = [&](std::size_t i) { return i < node.inputs.size() && node.inputs[i].is_valid(); };
  for (std::size_t i = 3; i < 7; ++i) {
    if (is_given(i)) return nullptr;
  }
  const Shape& q = builder.shape(node.inputs[0]);
  const Shape& k = builder.shape(node.inputs[1]);
  const Shape& v = builder.shape(node.inputs[2]);
  if (node.outputs.size() != 1 || q.size() != 3 || node.attributes.get_float("softcap", 0.0f) != 0.0f) return nullptr;
  if (elements(q) == 0 || elements(k) == 0 || elements(v) == 0) return nullptr;
  const auto dim = [](std::int64_t size) { return static_cast<std::size_t>(size); };
  auto step = std::make_unique<AttentionStep>();
  kernels::Attention& a = step->shape;
  step->batch = dim(q[0]);
  a.heads = dim(node.attributes.get_int("q_num_heads", 1));
  a.queries = dim(q[1]);
  a.context = dim(k[1]);
  a.is_causal = node.attributes.get_int("is_causal", 0) != 0;
  kernels::CacheShape& cache = a.cache.shape;
  cache.kv_heads = dim(node.attributes.get_int("kv_num_heads", 1));
  cache.key_size = dim(k[2]) / cache.kv_heads;
  cache.value_size = dim(v[2]) / cache.kv_heads;
  cache.capacity = round_up(a.context, kernels::CacheShape::kBlock);
  a.q_stride = dim(q[2]);
  a.y_stride = a.heads * cache.value_size;
  a.scale =
      node.attributes.get_float("scale", static_cast<float>(1.0 / std::sqrt(static_cast<double>(cache.key_size))));
  return cache.is_supported() ? std::move(step) : nullptr;
}

}  // namespace

Result<bool> make_attention_steps(PlanBuilder& builder, graph::NodeId id) {
  const Node& node = builder.graph().node(id);
  if (node.op != Op::Attention) return false;
  std::unique_ptr<AttentionStep> whole = served_step(builder, node);
  const bool is_continued = builder.options().caches != nullptr;
  if (is_continued && (whole == nullptr || whole->batch != 1 || !whole->shape.is_causal)) {
    return input_error(
        "expected causal attention of one text, of three dimensions without cache, mask or softcap, found another "
        "form. Text is generated with decoders as checkpoints are read into");
  }
  if (whole == nullptr) return false;
  std::vector<int> reads;
  for (std::size_t i = 0; i < 3; ++i) {
    CTK_TRY(const int slot, builder.need(node.inputs[i], Form::native, Layout::plain));
    reads.push_back(slot);
  }
  whole->kernel = &kernels::select(kernels::attention_rows(), builder.isas());
  whole->scratch_bytes =
      whole->key_bytes() + whole->value_bytes() + kernels::attention_scratch_bytes(*whole->kernel, whole->shape);
  const std::string row = whole->kernel->name;
  std::unique_ptr<Step> step;
  if (is_continued) {
    CTK_TRY(step, cached_step(builder, id, *whole));
  } else {
    step = std::move(whole);
  }
  step->label = is_continued ? "attention_cached" : "attention";
  step->row = row;
  step->reads = std::move(reads);
  step->writes.push_back(builder.define(node.outputs[0], Form::native, Layout::plain));
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime
