#include "runtime/kv_caches.h"

#include <cstring>

#include "core/tensor.h"

namespace ctk::runtime {
namespace {

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

Result<kernels::KvCache> KvCaches::of(graph::NodeId node, std::size_t kv_heads, std::size_t key_size,
                                      std::size_t value_size) {
  Held& held = held_[node.index];
  if (held.memory != nullptr) return held.cache;
  kernels::KvCache& cache = held.cache;
  cache.shape.form = form_;
  cache.shape.kv_heads = kv_heads;
  cache.shape.key_size = key_size;
  cache.shape.value_size = value_size;
  cache.shape.capacity = round_up(context_, kernels::CacheShape::kBlock);
  const std::size_t key_bytes = round_up(cache.shape.key_bytes(), 64);
  const std::size_t value_bytes = round_up(cache.shape.value_bytes(), 64);
  const std::size_t bytes = key_bytes + value_bytes + 2 * cache.shape.scale_count() * sizeof(float);
  held.memory = allocate_aligned(bytes);
  if (held.memory == nullptr) {
    return input_error("out of memory: keys and values of " + std::to_string(context_) + " tokens need " +
                       std::to_string(bytes) + " bytes a layer. Ask for a shorter context");
  }
  std::memset(held.memory.get(), 0, bytes);
  auto* const memory = static_cast<std::byte*>(held.memory.get());
  cache.keys = memory;
  cache.values = memory + key_bytes;
  if (cache.shape.scale_count() != 0) {
    cache.key_scales = reinterpret_cast<float*>(memory + key_bytes + value_bytes);
    cache.value_scales = cache.key_scales + cache.shape.scale_count();
  }
  bytes_ += bytes;
  return cache;
}

}  // namespace ctk::runtime
