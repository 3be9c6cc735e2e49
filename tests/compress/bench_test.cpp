#include "compress/bench.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "compress/bench_suites/load_probe.h"
#include "compress/bench_suites/networks.h"
#include "compress/bench_suites/suites.h"
#include "compress/model.h"
#include "export/bundle.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

TEST(BenchSuites, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const BenchSuite& suite : bench_suites()) {
    EXPECT_TRUE(names.insert(suite.name).second) << suite.name;
    EXPECT_FALSE(suite.what.empty()) << suite.name;
  }
  EXPECT_TRUE(names.contains("w4"));
  EXPECT_TRUE(names.contains("attn"));
  EXPECT_TRUE(names.contains("int8"));
  EXPECT_TRUE(names.contains("llm"));
  EXPECT_TRUE(names.contains("quant"));
}

TEST(BenchSuites, LlmTimesReadingAndWriting) {
  BenchOptions options;
  options.suite = "llm";
  options.quick = true;
  options.seconds = 0;
  std::map<std::string, BenchRow> rows;
  const Status done = run_bench(options, [&](const BenchRow& row) { rows[row.row] = row; });
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(rows.size(), 2u);
  const BenchRow &prefill = rows.at("llm.prefill512"), &decode = rows.at("llm.decode128");
  EXPECT_GT(prefill.min_us, 0);
  EXPECT_GT(decode.min_us, 0);
  // q, k, v, o and three products of the feed-forward part in four layers, and a head of 4096: 4.5 bits a weight.
  const std::int64_t weights = 4 * (576 * (576 + 2 * 192 + 576) + 3 * 576 * 1536) + 4096 * 576;
  EXPECT_GE(decode.bytes, weights * 9 / 16);
  EXPECT_LE(decode.bytes, weights * 10 / 16);
}

// Multiply-adds as published for 224 x 224: 1.814 and 0.3008 thousand million; parameters of torchvision's networks
// with each batch norm (two numbers a channel) folded into one bias: 11689512 - 4800 and 3504872 - 17056, and there the
// two bounds of 35 Clips.
TEST(BenchNetworks, AreThePublishedOnes) {
  const std::map<std::string_view, std::pair<std::int64_t, std::int64_t>> expected = {
      {"resnet18", {1814073344, 11684712}}, {"mobilenetv2", {300774272, 3487816 + 70}}};
  ASSERT_EQ(bench_networks().size(), expected.size());
  for (const BenchNetwork& network : bench_networks()) {
    LoadedModel model;
    model.graph = network.build();
    model.sample_shapes = {{1, 3, 224, 224}};
    ASSERT_TRUE(graph::verify(model.graph)) << network.name;
    EXPECT_EQ(total_macs(model), expected.at(network.name).first) << network.name;
    EXPECT_EQ(parameter_count(model.graph), expected.at(network.name).second) << network.name;
  }
}

TEST(BenchNetworks, ComputeOnCodesFromInputToOutput) {
  for (const ConvChain& chain : conv_chains()) {
    graph::Graph graph = build_chain(chain);
    ASSERT_TRUE(quantize_network(graph)) << chain.name;
    const auto layers = graph::layers_of(graph);
    EXPECT_EQ(layers.size(), 8u) << chain.name;
    for (const graph::Layer& layer : layers) {
      EXPECT_TRUE(graph.node(layer.node).scheme.is_integer_activation()) << chain.name;
      EXPECT_TRUE(graph.value(layer.input).activation_quant.has_value()) << chain.name;
    }
  }
}

TEST(LoadProbe, LoadsRunsAndWeighsABundle) {
  auto probe = LoadProbe::start();
  ASSERT_TRUE(probe) << probe.error().message;
  graph::Graph graph = build_chain({"small", 8, 16, 3, 1});
  ASSERT_TRUE(quantize_network(graph));
  const std::string path = testing::TempDir() + std::to_string(::getpid()) + "_load_probe.ctkb";
  ASSERT_TRUE(exporter::write_bundle(graph, path));
  const auto figure = probe->load(path, {1, 8, 16, 16}, 2);
  ASSERT_TRUE(figure) << figure.error().message;
  EXPECT_GT(figure->seconds, 0);
  EXPECT_GT(figure->base_mb, 0);
  EXPECT_GE(figure->peak_mb, figure->base_mb);
  std::filesystem::remove(path);
}

TEST(LoadProbe, PassesOnWhatWentWrongInItsProcess) {
  auto probe = LoadProbe::start();
  ASSERT_TRUE(probe) << probe.error().message;
  const auto figure = probe->load("/nonexistent/x.ctkb", {1, 3, 8, 8}, 1);
  ASSERT_FALSE(figure);
  EXPECT_EQ(figure.error().code, ErrorCode::input);
  EXPECT_NE(figure.error().message.find("/nonexistent/x.ctkb"), std::string::npos) << figure.error().message;
}

TEST(BenchSuites, MeasureTheRowsOfInt8) {
  BenchOptions options;
  options.suite = "int8";
  options.quick = true;
  options.seconds = 0.001;
  std::map<std::string, BenchRow> rows;
  const Status status = run_bench(options, [&](const BenchRow& row) { rows[row.row + " " + row.variant] = row; });
  ASSERT_TRUE(status.has_value()) << status.error().message;
  for (const auto& [name, row] : rows) {
    EXPECT_GT(row.min_us, 0) << name;
    EXPECT_LE(row.min_us, row.med_us) << name;
  }
  // 256 x 256 weights over 14 x 14 pixels, two operations each; one layer of the chain.
  ASSERT_TRUE(rows.contains("conv.conv1x1_256_14 int8-w8a8_c"));
  EXPECT_EQ(rows["conv.conv1x1_256_14 int8-w8a8_c"].ops, 2 * 256 * 256 * 14 * 14);
  EXPECT_TRUE(rows.contains("conv.dw3x3_32_112 int8-w8a8_c"));
  ASSERT_TRUE(rows.contains("gemm8.M64.K1024 u8s8-u8"));
  EXPECT_EQ(rows["gemm8.M64.K1024 u8s8-u8"].ops, 2 * 64 * 1024 * 1024);
  EXPECT_TRUE(rows.contains("gemm8.M64.K1024 u8s8-f32"));
}

TEST(BenchSuites, QuantTimesMomentsCodesAndRounding) {
  BenchOptions options;
  options.suite = "quant";
  options.quick = true;
  std::map<std::string, BenchRow> rows;
  const Status status = run_bench(options, [&](const BenchRow& row) { rows[row.row + " " + row.variant] = row; });
  ASSERT_TRUE(status.has_value()) << status.error().message;
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows["gptq.hessian.K256.4096tok "].ops, std::int64_t{2} * 256 * 256 * 4096);
  EXPECT_GT(rows["gptq.solve_g128.256x256 plain"].min_us, 0);
  EXPECT_GT(rows["gptq.solve_g128.256x256 default"].min_us, 0);
  EXPECT_EQ(rows["quant.rtn4_g128.256x256x1 fitted"].bytes, 4 * 256 * 256);
  EXPECT_GT(rows["quant.rtn4_g128.256x256x1 absmax"].min_us, 0);
}

TEST(BenchSuites, RefuseAnUnknownNameAndListTheKnown) {
  BenchOptions options;
  options.suite = "w5";
  const Status status = run_bench(options, [](const BenchRow&) { FAIL() << "measured something"; });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::config);
  EXPECT_NE(status.error().message.find("expected one of w4"), std::string::npos) << status.error().message;
  EXPECT_NE(status.error().message.find("found \"w5\""), std::string::npos) << status.error().message;
}

TEST(BenchSuites, CountWhatAttentionReadsAndDoes) {
  BenchOptions options;
  options.suite = "attn";
  options.quick = true;
  options.seconds = 0.0;
  std::map<std::string, BenchRow> rows;
  ASSERT_TRUE(run_bench(options, [&](const BenchRow& row) { rows[row.row + " " + row.variant] = row; }).has_value());
  // 1024 tokens of 3 heads, 64 elements each of key and value; int8 adds a float scale to each of the 2 x 3072.
  EXPECT_EQ(rows["attn.decode.H9kv3d64.ctx1024 fp32-cache"].bytes, 1572864);
  EXPECT_EQ(rows["attn.decode.H9kv3d64.ctx1024 fp16-cache"].bytes, 786432);
  EXPECT_EQ(rows["attn.decode.H9kv3d64.ctx1024 int8-cache"].bytes, 393216 + 24576);
  EXPECT_EQ(rows["attn.decode.H9kv3d64.ctx1024 fp32-cache"].ops, 2359296);
  // A prompt: 4 * 9 * 64 for each of 512 * 513 / 2 pairs.
  EXPECT_EQ(rows["attn.prefill.H9kv3d64.n512 fp32-cache"].ops, 302579712);
  for (const auto& [name, row] : rows) EXPECT_GT(row.min_us, 0.0) << name;
  EXPECT_EQ(rows.size(), 9u);
}

}  // namespace
}  // namespace ctk::pipeline
