// The loop allocates nothing: global operator new counts while a plan runs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "core/parallel.h"
#include "graph/passes/passes.h"
#include "runtime/cpu_executor.h"
#include "tests/support/small_networks.h"

namespace {
std::atomic<long> g_allocations{0};
}

void* operator new(std::size_t bytes) {
  ++g_allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ctk::runtime {
namespace {

TEST(CpuExecutorLoop, AllocatesNothing) {
  graph::Graph graph = test::residual_network();
  ASSERT_TRUE(graph::run_passes(graph));
  for (int threads : {1, 2}) {
    set_threads(threads);
    auto executor = CpuExecutor::create(graph, {{2, 3, 9, 7}});
    ASSERT_TRUE(executor);
    ASSERT_TRUE((*executor)->run_steps());   // the first run may start the thread team
    const long before = g_allocations;
    for (int i = 0; i < 10; ++i) ASSERT_TRUE((*executor)->run_steps());
    EXPECT_EQ(g_allocations - before, 0) << threads << " threads";
  }
  set_threads(1);
}

}  // namespace
}  // namespace ctk::runtime
