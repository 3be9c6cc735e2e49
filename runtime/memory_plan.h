// Packs buffers with known lifetimes into one arena.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ctk::runtime {

struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0, last = 0;  // step indices, inclusive
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // one per lifetime, multiples of 64
  std::size_t arena_bytes = 0;
  std::size_t lower_bound = 0;  // most bytes alive in any one step: no plan can need less
};

// Greedy by size (Pisarchyk and Lee, 2020): largest buffer first, each at the lowest offset free during its lifetime.
// Ties: earlier first step, then index, so that the plan is the same on every run.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace ctk::runtime
