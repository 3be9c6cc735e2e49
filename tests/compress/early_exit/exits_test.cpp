#include "compress/early_exit/exits.h"

#include <gtest/gtest.h>

#include "runtime/cpu_executor.h"
#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

using graph::Graph;

// x [N, 1, 2, 2] -> Conv by 2 -> Relu r -> Conv by 3 -> mean -> y [N, 2] of weights (1, -1).
Graph net() {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 1, 2, 2});
  const auto c = b.node("Conv", {x, b.constant("w", floats({1, 1, 1, 1}, {2}))}, "c");
  const auto r = b.node("Relu", {c}, "r");
  const auto d = b.node("Conv", {r, b.constant("v", floats({1, 1, 1, 1}, {3}))}, "d");
  const auto f = b.node("Flatten", {b.node("GlobalAveragePool", {d}, "g")}, "f");
  b.output(b.node("MatMul", {f, b.constant("head", floats({1, 2}, {1, -1}))}, "y"));
  return std::move(b.graph);
}

std::vector<graph::InferredValue> infos_of(const Graph& graph) {
  const std::vector<Shape> shapes{{1, 1, 2, 2}};
  return graph::infer_shapes(graph, shapes).value();
}

// The head of r sees the mean m of 2 max(x, 0) and says (m, -m): it is sure as sigmoid(2 m).
Graph with_exit(float threshold) {
  Graph graph = net();
  const exits::Head head{*graph.find_value("r"), floats({2, 1}, {1, -1}), floats({2}, {0, 0}), threshold};
  const Status added = exits::add_exits(graph, {head}, infos_of(graph));
  EXPECT_TRUE(added) << added.error().message;
  return graph;
}

std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  auto executor = runtime::CpuExecutor::create(graph, shapes);
  EXPECT_TRUE(executor) << executor.error().message;
  auto outputs = (*executor)->run(inputs);
  EXPECT_TRUE(outputs) << outputs.error().message;
  return *outputs;
}

// Samples of ones and of a tenth: means of r are 2 and 0.2, sigmoid(4) = 0.982, sigmoid(0.4) = 0.599; the end says 3 m.
const Tensor kTwo = floats({2, 1, 2, 2}, {1, 1, 1, 1, 0.1f, 0.1f, 0.1f, 0.1f});

TEST(Exits, EachSampleTakesTheWayItIsSureOf) {
  const Floats y = values_of(run(with_exit(0.9f), {kTwo})[0]);
  EXPECT_FLOAT_EQ(y[0], 2);  // leaves
  EXPECT_FLOAT_EQ(y[1], -2);
  EXPECT_FLOAT_EQ(y[2], 0.6f);  // goes on
  EXPECT_FLOAT_EQ(y[3], -0.6f);
}

TEST(Exits, AThresholdThatIsReachedExactlyIsReached) {
  // Two equal logits: 0.5 each.
  const Tensor zeros = floats({1, 1, 2, 2}, {0, 0, 0, 0});
  Graph graph = net();
  const exits::Head head{*graph.find_value("r"), floats({2, 1}, {1, -1}), floats({2}, {7, 7}), 0.5f};
  ASSERT_TRUE(exits::add_exits(graph, {head}, infos_of(graph)));
  EXPECT_EQ(values_of(run(graph, {zeros})[0]), (Floats{7, 7}));
}

TEST(Exits, TheNetworksOwnEndKeepsItsBits) {
  const Graph graph = with_exit(0.9f);
  const exits::Exits names = exits::exits_of(graph).value();
  Graph probe = graph.clone();
  probe.add_output(*probe.find_value(names.end));
  const Tensor inputs = varied({3, 1, 2, 2}, 5);
  EXPECT_EQ(values_of(run(probe, {inputs})[1]), values_of(run(net(), {inputs})[0]));
}

TEST(Exits, StagesInOrderGiveWhatTheGraphGives) {
  const Graph graph = with_exit(0.9f);
  const exits::Exits names = exits::exits_of(graph).value();
  ASSERT_EQ(names.exits.size(), 1u);
  EXPECT_FLOAT_EQ(names.exits[0].threshold, 0.9f);
  const auto stages = exits::stages_of(graph, names, infos_of(graph));
  ASSERT_TRUE(stages) << stages.error().message;
  ASSERT_EQ(stages->size(), 2u);
  const std::vector<Tensor> first = run((*stages)[0].graph, {kTwo});  // feature, logits, confidence
  const std::vector<Tensor> last = run((*stages)[1].graph, {first[0]});
  const Floats whole = values_of(run(graph, {kTwo})[0]), logits = values_of(first[1]), sure = values_of(first[2]);
  EXPECT_GE(sure[0], 0.9f);
  EXPECT_LT(sure[1], 0.9f);
  EXPECT_EQ((Floats{logits[0], logits[1]}), (Floats{whole[0], whole[1]}));
  const Floats end = values_of(last[0]);
  EXPECT_EQ((Floats{end[2], end[3]}), (Floats{whole[2], whole[3]}));
  EXPECT_FALSE((*stages)[1].graph.find_value("w"));  // nothing is computed twice
}

TEST(Exits, ThresholdsAreSetInGraphAndMetadata) {
  Graph graph = with_exit(0.9f);
  ASSERT_TRUE(exits::set_thresholds(graph, {0.5f}));
  EXPECT_FLOAT_EQ(exits::exits_of(graph)->exits[0].threshold, 0.5f);
  EXPECT_FLOAT_EQ(values_of(run(graph, {kTwo})[0])[2], 0.2f);  // now the second sample leaves too
}

TEST(Exits, MetadataOfSomebodyElseIsRefused) {
  Graph graph = net();
  EXPECT_TRUE(exits::exits_of(graph)->exits.empty());
  graph.metadata.emplace_back(exits::kKey, "yes");
  const auto found = exits::exits_of(graph);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("metadata \"early_exit\": expected exits as a run writes them, found \"yes\""),
            std::string::npos);
}

}  // namespace
}  // namespace ctk::test
