#include "runtime/npu_executor.h"

#include <gtest/gtest.h>

#include "graph/passes/passes.h"
#include "tests/support/coded_network.h"
#include "tests/support/graph_builder.h"
#include "tests/support/small_networks.h"
#include "tests/support/small_npu.h"

namespace ctk::runtime {
namespace {

using graph::NodeId;
using graph::ValueId;

// Two rows of 5 by 3 outputs: floats in, codes to the layer, floats out.
graph::Graph product() {
  test::GraphBuilder b;
  const ValueId x = b.input("x", {2, 5});
  b.output(b.node("MatMul", {x, b.constant("w", test::varied({5, 3}))}, "y"));
  test::code_everything(b.graph);
  b.graph.value(*b.graph.find_value("y")).activation_quant.reset();
  return std::move(b.graph);
}

TEST(NpuExecutor, CountsAProductAsByHand) {
  const graph::Graph graph = product();
  auto made = NpuExecutor::create(graph, {{2, 5}}, {test::small_npu()});
  ASSERT_TRUE(made) << made.error().message;
  const NpuReport report = (*made)->report();
  ASSERT_EQ(report.layers.size(), 1u);
  const NpuLayer& layer = report.layers[0];
  EXPECT_EQ(layer.node, test::producer_of(graph, "y"));
  EXPECT_EQ(layer.row, "gemm_w8a8_npu_sim");
  // In: 15 weights 10 + 8 cycles, 3 columns of 8 bytes 10 + 12, 10 codes 10 + 5; 2 x 2 passes of 3 + 2; 6 values, 2 a
  // cycle; out: 24 bytes of floats 10 + 12.
  EXPECT_EQ(layer.counts.cycles, 18u + 22 + 15 + 20 + 3 + 22);
  EXPECT_EQ(layer.counts.bytes_constants, 39u);
  EXPECT_EQ(layer.counts.bytes_in, 10u);
  EXPECT_EQ(layer.counts.bytes_out, 24u);
  EXPECT_EQ(report.total.cycles, layer.counts.cycles);
  EXPECT_EQ(report.launches, 1u);
  ASSERT_EQ(report.fallbacks.size(), 1u);
  EXPECT_FALSE(report.fallbacks[0].node.is_valid());
  EXPECT_EQ(report.fallbacks[0].reason, "the NPU has no commands for quantize");
  ASSERT_EQ(report.transfers.size(), 2u);
  EXPECT_EQ(graph.value(report.transfers[0].value).name, "x");
  EXPECT_EQ(report.transfers[0].bytes, 10u);
  EXPECT_TRUE(report.transfers[0].to_npu);
  EXPECT_EQ(graph.value(report.transfers[1].value).name, "y");
  EXPECT_EQ(report.transfers[1].bytes, 24u);
  EXPECT_FALSE(report.transfers[1].to_npu);
}

graph::Graph coded_network() {
  graph::Graph graph = test::residual_network();
  EXPECT_TRUE(graph::run_passes(graph));
  test::code_everything(graph);
  return graph;
}

std::vector<float> run(graph::Executor& executor) {
  const Tensor x = test::varied({2, 3, 9, 7}, 42);
  auto outputs = executor.run(std::span(&x, 1));
  EXPECT_TRUE(outputs) << outputs.error().message;
  return test::values_of((*outputs)[0]);
}

TEST(NpuExecutor, GivesTheBitsOfTheProcessorFusedOrNot) {
  const graph::Graph graph = coded_network();
  for (bool fuse : {true, false}) {
    ExecutorOptions options;
    options.fuse = fuse;
    auto cpu = CpuExecutor::create(graph, {{2, 3, 9, 7}}, options);
    auto npu = NpuExecutor::create(graph, {{2, 3, 9, 7}}, {test::small_npu(2000)}, options);
    ASSERT_TRUE(cpu && npu);
    EXPECT_EQ((*npu)->report().layers.size(), graph::layers_of(graph).size());
    EXPECT_EQ(run(**npu), run(**cpu)) << fuse;
  }
}

TEST(NpuExecutor, LayersStayWhereTheyArePlacedOrWhatTheyNeed) {
  graph::Graph graph = coded_network();
  auto cpu = CpuExecutor::create(graph, {{2, 3, 9, 7}});
  ASSERT_TRUE(cpu);
  const NodeId first = test::producer_of(graph, "c1"), depthwise = test::producer_of(graph, "dw");
  auto npu = NpuExecutor::create(graph, {{2, 3, 9, 7}}, {test::small_npu(), std::set{first, depthwise}});
  ASSERT_TRUE(npu) << npu.error().message;
  const NpuReport report = (*npu)->report();
  ASSERT_EQ(report.layers.size(), 2u);
  EXPECT_EQ(report.layers[0].row, "conv_w8a8_npu_sim");
  EXPECT_EQ(report.layers[1].row, "depthwise_w8a8_npu_sim");
  EXPECT_EQ(report.launches, 1u);
  // To it: 378 = 2 x 3 x 9 x 7 codes. Back: the clipped ones, and r1, which a later sum reads too: 1008 = 2 x 8 x 9
  // x 7.
  std::string moves;
  for (const NpuTransfer& t : report.transfers)
    moves += graph.value(t.value).name + (t.to_npu ? " > " : " < ") + std::to_string(t.bytes) + "; ";
  EXPECT_EQ(moves, "x > 378; clip < 1008; r1 < 1008; ");
  bool is_told = false;
  int pools = 0;
  for (const NpuFallback& fallback : report.fallbacks) {
    if (fallback.node == test::producer_of(graph, "c2")) {
      is_told = true;
      EXPECT_EQ(fallback.reason, "placed on the processor");
    }
    if (fallback.node == test::producer_of(graph, "pooled")) {
      ++pools;
      EXPECT_EQ(fallback.reason, "the NPU has no commands for pool_max (MaxPool)");
    }
  }
  EXPECT_TRUE(is_told);
  EXPECT_EQ(pools, 1);
  EXPECT_EQ(run(**npu), run(**cpu));
}

TEST(NpuExecutor, ACardTooSmallForALayerNamesTheLayer) {
  const graph::Graph graph = coded_network();
  const auto npu = NpuExecutor::create(graph, {{2, 3, 9, 7}}, {test::small_npu(256)});
  ASSERT_FALSE(npu);
  EXPECT_EQ(npu.error().code, ErrorCode::config);
  EXPECT_NE(npu.error().message.find("(Conv): \"small\": scratchpad: expected at least 320 B for the smallest tile"),
            std::string::npos)
      << npu.error().message;
}

}  // namespace
}  // namespace ctk::runtime
