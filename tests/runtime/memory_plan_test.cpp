#include "runtime/memory_plan.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace ctk::runtime {
namespace {

TEST(MemoryPlan, ReusesMemoryOfBuffersThatAreOver) {
  // a: steps 0-1, b: 1-2, c: 2-3, 64 bytes each: a and c share.
  const std::vector<Lifetime> lives{{64, 0, 1}, {64, 1, 2}, {64, 2, 3}};
  const MemoryPlan plan = plan_memory(lives);
  EXPECT_EQ(plan.arena_bytes, 128u);
  EXPECT_EQ(plan.lower_bound, 128u);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
}

TEST(MemoryPlan, NeverOverlapsBuffersAliveTogether) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::vector<Lifetime> lives(30);
    for (Lifetime& life : lives) {
      life.bytes = random.below(1000);
      life.first = random.below(20);
      life.last = life.first + random.below(6);
    }
    const MemoryPlan plan = plan_memory(lives);
    EXPECT_GE(plan.arena_bytes, plan.lower_bound);
    for (std::size_t i = 0; i < lives.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % 64, 0u);
      for (std::size_t j = 0; j < i; ++j) {
        if (lives[j].last < lives[i].first || lives[i].last < lives[j].first) continue;
        const bool apart =
            plan.offsets[i] + lives[i].bytes <= plan.offsets[j] || plan.offsets[j] + lives[j].bytes <= plan.offsets[i];
        EXPECT_TRUE(apart || lives[i].bytes == 0 || lives[j].bytes == 0) << "seed " << seed;
      }
    }
  }
}

TEST(MemoryPlan, EmptyListNeedsNothing) {
  EXPECT_EQ(plan_memory({}).arena_bytes, 0u);
}

}  // namespace
}  // namespace ctk::runtime
