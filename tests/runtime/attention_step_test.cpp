// Attention as planned gives what its float evaluation gives, whatever the heads, sizes, batch and threads.
#include <gtest/gtest.h>

#include <cstring>

#include "core/parallel.h"
#include "core/random.h"
#include "runtime/cpu_executor.h"
#include "tests/support/interpret.h"

namespace ctk::runtime {
namespace {

using graph::DeclaredShape;
using graph::Graph;
using graph::ValueId;

struct Case {
  std::int64_t batch, queries, keys, heads, kv_heads, key_size, value_size;
  bool is_causal;
};

// q [B, Tq, heads * key_size], k and v [B, Tk, kv_heads * size] -> y; `mask`: a fourth input [Tq, Tk].
Graph attention_network(const Case& c, bool has_mask = false) {
  Graph graph;
  graph::Node node;
  node.name = "attention";
  node.op_type = "Attention";
  const auto add = [&](const char* name, const Shape& shape) {
    DeclaredShape declared;
    for (std::int64_t size : shape) declared.push_back({size, ""});
    const ValueId id = graph.add_value(name, DType::f32, declared);
    graph.add_input(id);
    node.inputs.push_back(id);
  };
  add("q", {c.batch, c.queries, c.heads * c.key_size});
  add("k", {c.batch, c.keys, c.kv_heads * c.key_size});
  add("v", {c.batch, c.keys, c.kv_heads * c.value_size});
  if (has_mask) add("mask", {c.queries, c.keys});
  node.attributes.set("q_num_heads", c.heads);
  node.attributes.set("kv_num_heads", c.kv_heads);
  node.attributes.set("is_causal", std::int64_t{c.is_causal});
  node.outputs = {graph.add_value("y", DType::f32)};
  graph.add_output(node.outputs[0]);
  graph.add_node(std::move(node));
  return graph;
}

std::vector<Tensor> random_inputs(const Graph& graph) {
  std::vector<Tensor> inputs;
  Random random(7, "attention step");
  for (const Shape& shape : graph::default_input_shapes(graph, 1)) {
    Tensor input = Tensor::zeros(DType::f32, shape).value();
    for (float& x : input.mutable_values<float>()) x = static_cast<float>(random.normal());
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// The output, and the label of the one step.
std::pair<Tensor, std::string> run_planned(const Graph& graph, const std::vector<Tensor>& inputs) {
  auto executor = CpuExecutor::create(graph, graph::default_input_shapes(graph, 1));
  if (!executor) {
    ADD_FAILURE() << executor.error().message;
    return {};
  }
  // Twice, so that scratch and arena are no longer fresh.
  EXPECT_TRUE((*executor)->run(inputs).has_value());
  auto outputs = (*executor)->run(inputs);
  if (!outputs) {
    ADD_FAILURE() << outputs.error().message;
    return {};
  }
  EXPECT_EQ((*executor)->plan().steps.size(), 1u);
  return {(*outputs)[0], (*executor)->plan().steps[0]->label};
}

TEST(AttentionStep, GivesWhatTheOperatorGives) {
  const Case cases[] = {{1, 1, 1, 1, 1, 1, 1, true},      {1, 70, 70, 8, 2, 8, 8, true},
                        {2, 33, 33, 4, 4, 5, 3, false},   {1, 5, 300, 6, 3, 64, 64, false},
                        {3, 17, 40, 9, 3, 16, 24, false}, {1, 300, 300, 2, 1, 64, 64, true}};
  for (const Case& c : cases) {
    const Graph graph = attention_network(c);
    const std::vector<Tensor> inputs = random_inputs(graph);
    const auto [y, label] = run_planned(graph, inputs);
    const auto want = test::interpret(graph, inputs);
    ASSERT_TRUE(want.has_value()) << want.error().message;
    EXPECT_EQ(label, "attention");
    ASSERT_EQ(y.shape(), want->outputs[0].shape());
    for (std::size_t i = 0; i < y.size(); ++i) {
      // Both sum some hundred float32 terms of size 1.
      ASSERT_NEAR(y.values<float>()[i], want->outputs[0].values<float>()[i], 1e-5f)
          << c.queries << " x " << c.keys << ", " << i;
    }
  }
}

TEST(AttentionStep, ThreadsDoNotChangeABit) {
  const Graph graph = attention_network({2, 100, 100, 8, 2, 16, 16, true});
  const std::vector<Tensor> inputs = random_inputs(graph);
  set_threads(1);
  const Tensor one = run_planned(graph, inputs).first;
  set_threads(3);
  const Tensor three = run_planned(graph, inputs).first;
  set_threads(1);
  ASSERT_EQ(one.bytes(), three.bytes());
  EXPECT_EQ(std::memcmp(one.data(), three.data(), one.bytes()), 0);
}

TEST(AttentionStep, LeavesOtherFormsToTheOperator) {
  const Case c = {1, 5, 7, 2, 2, 4, 4, false};
  Graph capped = attention_network(c);
  capped.node(capped.order()[0]).attributes.set("softcap", 20.0f);
  for (const Graph& graph : {attention_network(c, true), capped}) {
    EXPECT_EQ(run_planned(graph, random_inputs(graph)).second, "reference_Attention");
  }
}

}  // namespace
}  // namespace ctk::runtime
