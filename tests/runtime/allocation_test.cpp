// The loop allocates nothing: global operator new counts while a plan runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "core/parallel.h"
#include "graph/layer.h"
#include "graph/passes/passes.h"
#include "runtime/cpu_executor.h"
#include "runtime/generate.h"
#include "runtime/npu_executor.h"
#include "tests/support/coded_network.h"
#include "tests/support/small_networks.h"
#include "tests/support/small_npu.h"
#include "tests/support/tiny_decoder.h"

namespace {
std::atomic<long> g_allocations{0};
}

void* operator new(std::size_t bytes) {
  ++g_allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace ctk::runtime {
namespace {

void expect_no_allocation(bool is_coded, ExecutorOptions options = {}) {
  graph::Graph graph = test::residual_network();
  ASSERT_TRUE(graph::run_passes(graph));
  if (is_coded) test::code_everything(graph);
  for (int threads : {1, 2}) {
    set_threads(threads);
    auto executor = CpuExecutor::create(graph, {{2, 3, 9, 7}}, options);
    ASSERT_TRUE(executor) << executor.error().message;
    const auto& steps = (*executor)->plan().steps;
    EXPECT_EQ(std::ranges::any_of(steps, [](const auto& step) { return step->label == "conv_w8a8"; }), is_coded);
    ASSERT_TRUE((*executor)->run_steps());  // the first run may start the thread team
    const long before = g_allocations;
    for (int i = 0; i < 10; ++i) ASSERT_TRUE((*executor)->run_steps());
    EXPECT_EQ(g_allocations - before, 0) << threads << " threads";
  }
  set_threads(1);
}

TEST(CpuExecutorLoop, AllocatesNothingOnFloats) {
  expect_no_allocation(false);
}
TEST(CpuExecutorLoop, AllocatesNothingOnCodes) {
  expect_no_allocation(true);
}

TEST(CpuExecutorLoop, AllocatesNothingOnAnNpu) {
  NpuPlacement npu;
  npu.card = test::small_npu();
  ExecutorOptions options;
  options.npu = std::make_shared<const NpuPlacement>(npu);
  expect_no_allocation(true, options);
}

TEST(Allocation, AppendingTokensAllocatesNothing) {
  for (const kernels::CacheForm form : {kernels::CacheForm::f32, kernels::CacheForm::f16, kernels::CacheForm::i8}) {
    for (int threads : {1, 2}) {
      set_threads(threads);
      GenerateOptions options;
      options.cache = form;
      auto generator = Generator::create(test::tiny_decoder(), options);
      ASSERT_TRUE(generator.has_value());
      const std::int64_t first = 1;
      ASSERT_TRUE((*generator)->read(std::span(&first, 1)));
      const long before = g_allocations;
      bool is_done = true;
      for (std::int64_t id = 2; id < 34; ++id) is_done = is_done && (*generator)->append(id).has_value();
      EXPECT_EQ(g_allocations - before, 0) << "form " << int(form) << ", threads " << threads;
      EXPECT_TRUE(is_done);
    }
  }
  set_threads(1);
}

}  // namespace
}  // namespace ctk::runtime
