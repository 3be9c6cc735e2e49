// Suite attn: attention of one layer against a cache that was filled before, queries and answers float32.
//   decode:  one token against `ctx` positions, again and again the same.
//   prefill: `n` tokens at once, each with those before it; writing them into the cache is timed apart (append).
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "compress/bench_suites/suites.h"
#include "compress/bench_suites/timing.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/tensor.h"
#include "kernels/attention/attention.h"
#include "kernels/select.h"

namespace ctk::pipeline {
namespace {

using kernels::CacheForm;

struct Point {
  std::size_t heads, kv_heads, size, queries, context;
};
constexpr Point kPoints[] = {{9, 3, 64, 1, 1024}, {9, 3, 64, 512, 512}, {32, 8, 128, 1, 2048}};
constexpr std::size_t kQuickPoints = 2;

struct Variant {
  const char* name;
  CacheForm form;
};
constexpr Variant kVariants[] = {
    {"fp32-cache", CacheForm::f32}, {"fp16-cache", CacheForm::f16}, {"int8-cache", CacheForm::i8}};

std::vector<float> noise(Random& random, std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

Status no_memory(std::size_t bytes) {
  return input_error("bench: --suite attn: expected " + std::to_string(bytes) +
                     " bytes of free memory, found less. Close other programs, or use --quick");
}

std::string shape_name(const Point& p) {
  return "H" + std::to_string(p.heads) + "kv" + std::to_string(p.kv_heads) + "d" + std::to_string(p.size);
}

Status bench_point(const BenchOptions& options, const kernels::AttentionRow& row, const Point& p,
                   const Variant& variant, const EmitRow& emit) {
  Random random(0, "bench attn");
  const std::vector<float> keys = noise(random, p.context * p.kv_heads * p.size), values = noise(random, keys.size());
  const std::vector<float> q = noise(random, p.queries * p.heads * p.size);
  std::vector<float> y(q.size());
  const kernels::CacheShape shape{variant.form, p.kv_heads, p.size, p.size, (p.context + 15) / 16 * 16};
  const std::size_t scale_bytes = shape.scale_count() * sizeof(float);
  const std::shared_ptr<void> held = allocate_aligned(shape.key_bytes() + shape.value_bytes() + 2 * scale_bytes);
  if (held == nullptr) return no_memory(shape.key_bytes() + shape.value_bytes() + 2 * scale_bytes);
  char* const memory = static_cast<char*>(held.get());
  std::memset(memory, 0, shape.key_bytes() + shape.value_bytes() + 2 * scale_bytes);

  kernels::KvAppend append;
  append.cache.shape = shape;
  append.cache.keys = memory;
  append.cache.values = memory + shape.key_bytes();
  append.cache.key_scales = reinterpret_cast<float*>(memory + shape.key_bytes() + shape.value_bytes());
  append.cache.value_scales = append.cache.key_scales + shape.scale_count();
  append.tokens = p.context;
  append.keys = keys.data();
  append.values = values.data();
  append.key_stride = append.value_stride = p.kv_heads * p.size;
  kernels::append_kv(row, append);

  kernels::Attention a;
  a.cache = append.cache;
  a.heads = p.heads;
  a.queries = p.queries;
  a.context = p.context;
  a.is_causal = true;
  a.past = p.context - p.queries;
  a.scale = 1.0f / std::sqrt(static_cast<float>(p.size));
  a.q = q.data();
  a.y = y.data();
  a.q_stride = a.y_stride = p.heads * p.size;
  const std::size_t scratch_bytes = kernels::attention_scratch_bytes(row, a);
  const std::shared_ptr<void> scratch = allocate_aligned(scratch_bytes);
  if (scratch == nullptr) return no_memory(scratch_bytes);

  const bool is_decode = p.queries == 1;
  BenchRow result;
  result.row = is_decode ? "attn.decode." + shape_name(p) + ".ctx" + std::to_string(p.context)
                         : "attn.prefill." + shape_name(p) + ".n" + std::to_string(p.queries);
  result.variant = variant.name;
  result.threads = options.threads;
  result.bytes = static_cast<std::int64_t>(shape.key_bytes() + shape.value_bytes() + 2 * scale_bytes);
  // Pairs of a query and a key it sees: a triangle in prefill.
  const std::size_t pairs = p.queries * a.past + p.queries * (p.queries + 1) / 2;
  result.ops = static_cast<std::int64_t>(4 * p.heads * p.size * pairs);
  time_row(
      options.seconds, 1, [&] { kernels::attention(row, a, scratch.get()); }, result);
  emit(result);
  if (is_decode) return {};
  result.row = "attn.append." + shape_name(p) + ".n" + std::to_string(p.queries);
  result.ops = static_cast<std::int64_t>(2 * keys.size());
  time_row(
      options.seconds, 1, [&] { kernels::append_kv(row, append); }, result);
  emit(result);
  return {};
}

}  // namespace

Status bench_attn(const BenchOptions& options, const EmitRow& emit) {
  CTK_TRY(const std::vector<Isa> isas, allowed_isas());
  const kernels::AttentionRow& row = kernels::select(kernels::attention_rows(), isas);
  const std::span<const Point> all(kPoints);
  for (const Point& point : options.quick ? all.first(kQuickPoints) : all) {
    for (const Variant& variant : kVariants) {
      CTK_CHECK(bench_point(options, row, point, variant, emit));
    }
  }
  return {};
}

}  // namespace ctk::pipeline
