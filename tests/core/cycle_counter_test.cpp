#include "core/cycle_counter.h"

#include <gtest/gtest.h>

#include <chrono>

namespace ctk {
namespace {

// A chain of dependent additions takes a cycle each at least, whatever the clock rate.
std::uint64_t cycles_of_chain(const CycleCounter& counter, int steps) {
  const std::uint64_t start = counter.read();
  std::uint64_t x = 1;
  for (int i = 0; i < steps; ++i) {
    x += static_cast<std::uint64_t>(i) | 1;
    asm volatile("" : "+r"(x));  // and is not worked out beforehand
  }
  return counter.read() - start;
}

TEST(CycleCounter, CountsWhatTheThreadDoes) {
  const auto counter = CycleCounter::open();
  if (!counter) GTEST_SKIP() << "nothing counts cycles here: a virtual machine, or perf_event_paranoid above 2";
  const std::uint64_t few = cycles_of_chain(*counter, 100'000), many = cycles_of_chain(*counter, 10'000'000);
  EXPECT_GE(few, 100'000u);
  EXPECT_GE(many, 10'000'000u);
  EXPECT_LE(many, 1'000'000'000u);
}

}  // namespace
}  // namespace ctk
