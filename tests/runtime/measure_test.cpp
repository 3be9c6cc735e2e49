#include "runtime/measure.h"

#include <gtest/gtest.h>

#include "runtime/cpu_executor.h"
#include "tests/support/graph_builder.h"

namespace ctk::runtime {
namespace {

using graph::ValueId;

// Row numbers whose memory later values take over: table rows, two products.
graph::Graph lookup_network() {
  test::GraphBuilder b;
  const ValueId ids = b.input("ids", {32}, DType::i64);
  const ValueId rows = b.node("Gather", {b.constant("table", test::varied({8, 16})), ids}, "rows");
  const ValueId h = b.node("MatMul", {rows, b.constant("w1", test::varied({16, 16}, 2))}, "h");
  b.output(b.node("MatMul", {h, b.constant("w2", test::varied({16, 4}, 3))}, "y"));
  return std::move(b.graph);
}

// Values that stood where the inputs had been were once taken for them: indices out of range, or other times.
TEST(Measure, EveryRunMeetsTheInputsOfTheLastRun) {
  const graph::Graph graph = lookup_network();
  auto executor = CpuExecutor::create(graph, {{32}});
  ASSERT_TRUE(executor) << executor.error().message;
  test::Ints ids(32);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i % 8);
  ASSERT_TRUE((*executor)->run(std::vector<Tensor>{test::ints(ids)}));
  CpuExecutor* const turn[] = {executor->get()};
  const auto whole = measure_interleaved(turn, {0.01, 3, 5, 2});
  ASSERT_TRUE(whole) << whole.error().message;
  const auto steps = measure_steps(turn, {0.01, 3, 5, 2});
  ASSERT_TRUE(steps) << steps.error().message;
  (*executor)->restore_inputs();
  const int slot = (*executor)->plan().input_slots[0];
  const auto* held = static_cast<const std::int64_t*>((*executor)->context().slots[static_cast<std::size_t>(slot)]);
  EXPECT_EQ(test::Ints(held, held + 32), ids);
}

TEST(Measure, WithoutARunTheInputsAreZeros) {
  const graph::Graph graph = lookup_network();
  auto executor = CpuExecutor::create(graph, {{32}});
  ASSERT_TRUE(executor) << executor.error().message;
  CpuExecutor* const turn[] = {executor->get()};
  EXPECT_TRUE(measure_interleaved(turn, {0.01, 3, 5, 2}));
}

}  // namespace
}  // namespace ctk::runtime
