// The integer network against an independent reading of it: the exported Q/DQ graph, interpreted node by node in float.
#include <gtest/gtest.h>

#include <cstdlib>

#include "compress/quantize/apply.h"
#include "compress/quantize/notes.h"
#include "core/parallel.h"
#include "export/bundle.h"
#include "export/onnx_qdq.h"
#include "graph/layer.h"
#include "graph/passes/passes.h"
#include "graph/text.h"
#include "runtime/bundle.h"
#include "runtime/cpu_executor.h"
#include "tests/support/small_networks.h"

namespace ctk {
namespace {

using graph::Graph;

Tensor sample() {
  Tensor x = test::varied({2, 3, 9, 7}, 42);
  for (float& v : x.mutable_values<float>()) v *= 2.0f;
  return x;
}

std::map<std::string, calibrate::Range> ranges_of(const Graph& graph) {
  std::map<std::string, calibrate::Range> ranges;
  const auto run = test::interpret(graph, {sample()});
  EXPECT_TRUE(run) << run.error().message;
  for (const auto& [name, tensor] : run->values) {
    if (tensor.dtype() != DType::f32) continue;
    calibrate::Range range;
    range.value = name;
    for (float v : tensor.values<float>()) {
      range.low = std::min(range.low, v);
      range.high = std::max(range.high, v);
    }
    ranges[name] = range;
  }
  return ranges;
}

Graph quantized(const char* scheme_name, std::size_t only_every = 1) {
  Graph graph = test::residual_network();
  EXPECT_TRUE(graph::run_passes(graph));
  quantization::SchemeMap schemes;
  std::size_t number = 0;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    if (number++ % only_every == 0) schemes[graph.address(layer.node)] = parse_scheme(scheme_name).value();
  }
  const auto applied = quantization::apply_schemes(graph, schemes, ranges_of(graph), {});
  EXPECT_TRUE(applied) << applied.error().message;
  return graph;
}

std::vector<float> run(const Graph& graph, bool fuse = true) {
  runtime::ExecutorOptions options;
  options.fuse = fuse;
  auto executor = runtime::CpuExecutor::create(graph, {{2, 3, 9, 7}}, options);
  EXPECT_TRUE(executor) << executor.error().message;
  const Tensor x = sample();
  auto outputs = (*executor)->run(std::span(&x, 1));
  EXPECT_TRUE(outputs) << outputs.error().message;
  return test::values_of((*outputs)[0]);
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

class IntegerNetwork : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Schemes, IntegerNetwork, testing::Values("w8a8_c", "w8a8_t", "w4a8_c", "fp16"));

TEST_P(IntegerNetwork, MeansWhatTheExportedQdqGraphMeans) {
  for (std::size_t every : {1u, 2u, 3u}) {  // mixed precision too: float layers between integer ones
    const Graph graph = quantized(GetParam(), every);
    const auto qdq = exporter::to_qdq(graph);
    ASSERT_TRUE(qdq) << qdq.error().message;
    const auto reference = test::interpret(*qdq, {sample()});
    ASSERT_TRUE(reference) << reference.error().message;
    const std::vector<float> expected = test::values_of(reference->outputs[0]);
    double scale = 0;
    for (float v : expected) scale = std::max(scale, std::abs(static_cast<double>(v)));
    // Roundings at a tie may go the other way in float; one such step reaches the output scaled down.
    EXPECT_LE(largest_difference(run(graph), expected), 0.02 * scale) << GetParam() << " every " << every;
  }
}

TEST_P(IntegerNetwork, FusingChangesNoBit) {
  EXPECT_EQ(run(quantized(GetParam())), run(quantized(GetParam()), false));
}

TEST_P(IntegerNetwork, ThreadsChangeNoBit) {
  const Graph graph = quantized(GetParam());
  const std::vector<float> one = run(graph);
  for (int threads : {2, 4}) {
    set_threads(threads);
    EXPECT_EQ(run(graph), one) << threads;
  }
  set_threads(1);
}

TEST_P(IntegerNetwork, EveryInstructionSetGivesTheScalarBits) {
  const Graph graph = quantized(GetParam());
  ::setenv("CTK_ISA", "scalar", 1);
  const std::vector<float> scalar = run(graph);
  for (Isa isa : host_isas()) {
    ::setenv("CTK_ISA", std::string(name_of(isa)).c_str(), 1);
    EXPECT_EQ(run(graph), scalar) << name_of(isa);
  }
  ::unsetenv("CTK_ISA");
}

TEST_P(IntegerNetwork, ComesBackFromItsBundleUnchanged) {
  const Graph graph = quantized(GetParam());
  const std::string file = exporter::bundle_of(graph);
  EXPECT_EQ(exporter::bundle_bytes(graph), file.size());
  auto held = std::make_shared<std::string>(file);
  const auto loaded = runtime::load_bundle_bytes(std::as_bytes(std::span(held->data(), held->size())), held);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(graph::print_graph(*loaded), graph::print_graph(graph));
  EXPECT_EQ(exporter::bundle_of(*loaded), file);
  EXPECT_EQ(run(*loaded), run(graph));
}

TEST(IntegerNetwork, StaysCloseToTheFloatNetworkAtEightBits) {
  Graph graph = test::residual_network();
  const auto reference = test::interpret(graph, {sample()});
  const std::vector<float> expected = test::values_of(reference->outputs[0]);
  double scale = 0;
  for (float v : expected) scale = std::max(scale, std::abs(static_cast<double>(v)));
  EXPECT_LE(largest_difference(run(quantized("w8a8_c")), expected), 0.03 * scale);
}

TEST(FloatNetwork, PlannedAgreesWithTheInterpreter) {
  Graph graph = test::residual_network();
  const auto reference = test::interpret(graph, {sample()});
  ASSERT_TRUE(graph::run_passes(graph));
  const std::vector<float> expected = test::values_of(reference->outputs[0]);
  EXPECT_LE(largest_difference(run(graph), expected), 1e-5);
  EXPECT_EQ(run(graph), run(graph, false));
}

// Convolutions around a nearest and a linear Resize.
Graph resizing_network() {
  test::GraphBuilder b;
  const auto conv = [&](const std::string& name, graph::ValueId in, Shape weight, unsigned seed) {
    return b.node("Conv", {in, b.constant(name + ".w", test::varied(std::move(weight), seed))}, name);
  };
  const auto resize = [&](const std::string& name, graph::ValueId in, const test::Floats& scales, const char* mode) {
    return b.node("Resize", {in, {}, b.constant(name + ".scales", test::floats({4}, scales))}, name,
                  {{"mode", std::string(mode)}});
  };
  const auto c1 = conv("c1", b.input("x", {2, 3, 9, 7}), {10, 3, 3, 3}, 1);
  const auto c2 = conv("c2", resize("near", c1, {1, 1, 2, 1.5f}, "nearest"), {9, 10, 3, 3}, 2);
  const auto c3 = conv("c3", resize("between", c2, {1, 1, 0.7f, 2}, "linear"), {4, 9, 3, 3}, 3);
  b.graph.add_output(c3);
  return std::move(b.graph);
}

TEST(ActivationNotes, CodesGoThroughResize) {
  Graph graph = resizing_network();
  ASSERT_TRUE(graph::run_passes(graph));
  const auto ranges = ranges_of(graph);
  quantization::SchemeMap schemes;
  for (const graph::Layer& layer : graph::layers_of(graph))
    schemes[graph.address(layer.node)] = parse_scheme("w8a8_c").value();
  ASSERT_TRUE(quantization::apply_schemes(graph, schemes, ranges, {}));
  const auto note = [&](const char* name) { return graph.value(*graph.find_value(name)).activation_quant; };
  ASSERT_TRUE(note("c1") && note("near") && note("c2") && note("between"));
  EXPECT_EQ(*note("near"), *note("c1"));
  EXPECT_EQ(note("between")->scale,
            activation_quant_from_range(ranges.at("between").low, ranges.at("between").high).scale);
  const auto qdq = exporter::to_qdq(graph);
  ASSERT_TRUE(qdq) << qdq.error().message;
  const std::vector<float> expected = test::values_of(test::interpret(*qdq, {sample()})->outputs[0]);
  const float scale = *std::max_element(expected.begin(), expected.end());
  EXPECT_LE(largest_difference(run(graph), expected), 0.02 * static_cast<double>(scale));
  EXPECT_EQ(run(graph), run(graph, false));
  const auto executor = runtime::CpuExecutor::create(graph, {{2, 3, 9, 7}}, {});
  ASSERT_TRUE(executor);
  for (const auto& step : (*executor)->plan().steps) EXPECT_NE(step->label, "reference_Resize");
}

TEST(ActivationNotes, DataMovementAndMaxPoolBearTheirInputsNote) {
  const Graph graph = quantized("w8a8_c");
  const auto note = [&](const char* name) { return graph.value(*graph.find_value(name)).activation_quant; };
  ASSERT_TRUE(note("r2") && note("half") && note("shortcut"));
  EXPECT_EQ(*note("half"), *note("r2"));
  EXPECT_EQ(*note("shortcut"), *note("r2"));
  EXPECT_EQ(*note("pooled"), *note("joined"));
  EXPECT_FALSE(note("y"));  // no integer layer reads the logits
}

}  // namespace
}  // namespace ctk
