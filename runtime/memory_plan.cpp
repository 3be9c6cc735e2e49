#include "runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace ctk::runtime {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  MemoryPlan plan;
  plan.offsets.assign(lifetimes.size(), 0);
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (lifetimes[a].bytes != lifetimes[b].bytes) return lifetimes[a].bytes > lifetimes[b].bytes;
    return lifetimes[a].first < lifetimes[b].first;
  });
  std::vector<std::size_t> placed;
  for (std::size_t index : order) {
    const Lifetime& life = lifetimes[index];
    std::vector<std::pair<std::size_t, std::size_t>> taken;  // [begin, end) of buffers alive at the same time
    for (std::size_t other : placed) {
      if (lifetimes[other].first <= life.last && life.first <= lifetimes[other].last) {
        taken.emplace_back(plan.offsets[other], plan.offsets[other] + aligned(lifetimes[other].bytes));
      }
    }
    std::sort(taken.begin(), taken.end());
    std::size_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + aligned(life.bytes) <= begin) break;
      offset = std::max(offset, end);
    }
    plan.offsets[index] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + aligned(life.bytes));
    placed.push_back(index);
  }
  std::size_t steps = 0;
  for (const Lifetime& life : lifetimes) steps = std::max(steps, life.last + 1);
  std::vector<std::size_t> alive(steps, 0);
  for (const Lifetime& life : lifetimes) {
    for (std::size_t s = life.first; s <= life.last; ++s) alive[s] += aligned(life.bytes);
  }
  for (std::size_t bytes : alive) plan.lower_bound = std::max(plan.lower_bound, bytes);
  return plan;
}

}  // namespace ctk::runtime
