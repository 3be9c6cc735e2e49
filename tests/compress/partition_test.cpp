#include "compress/partition.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "export/bundle.h"
#include "graph/passes/passes.h"
#include "tests/support/coded_network.h"
#include "tests/support/small_networks.h"

namespace ctk::pipeline {
namespace {

using search::partition::kCannotRun;

class PartitionFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("ctk_partition_" + std::to_string(::getpid()) + "_" +
                                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string card(const std::string& text) const {
    const std::string path = (folder_ / "card.yaml").string();
    std::ofstream(path) << text;
    return path;
  }
  std::filesystem::path folder_;
};

constexpr const char* kCard =
    "name: test unit\nkind: npu\nschemes: [w8a8_c]\npeak_gops: 1000\nbandwidth_gb_s: 10\nlaunch: 1 us\n"
    "transfer_start: 2 us\ntransfer_gb_s: 1\ntransfer_flush: 3 us\n";
const std::string kDigits = std::string(CTK_SOURCE_DIR) + "/configs/quickstart/digits_cnn.onnx";

TEST(PartitionCard, TimesAreTheSlowerOfArithmeticAndMemory) {
  TargetCard card;
  card.name = "unit";
  card.schemes = {*parse_scheme("w4a8_c")};
  card.peak_gops = 1000;    // 10^6 operations a us is 1 us
  card.bandwidth_gb_s = 1;  // 1000 bytes a us
  card.ops = {"Conv", "Add"};
  // 6e6 operations: 6 us. 2000 weights of half a byte and 3000 activations of one: 4000 bytes, 4 us.
  auto time = time_on_card(card, {"Conv", 6e6, 2000, 3000, true});
  EXPECT_DOUBLE_EQ(time.us, 6);
  EXPECT_EQ(time.form, "int8");
  EXPECT_EQ(time.source, "from the card");
  EXPECT_DOUBLE_EQ(time_on_card(card, {"Conv", 1e6, 2000, 3000, true}).us, 4);
  EXPECT_DOUBLE_EQ(time_on_card(card, {"Add", 1000, 0, 3000, false}).us, 3);
  time = time_on_card(card, {"Softmax", 1, 0, 1, false});
  EXPECT_EQ(time.us, kCannotRun);
  EXPECT_EQ(time.reason, "\"unit\" does not list Softmax");
  card.schemes = {*parse_scheme("fp16")};
  EXPECT_DOUBLE_EQ(time_on_card(card, {"Add", 1000, 0, 3000, false}).us, 6);
  EXPECT_EQ(time_on_card(card, {"Add", 1000, 0, 3000, false}).form, "half");
}

TEST_F(PartitionFiles, OneOperatorTheCardLacksFallsBackAlone) {
  auto all = partition_model(
      {kDigits,
       {card(std::string(kCard) + "ops: [Conv, Gemm, Relu, Add, MaxPool, AveragePool, GlobalAveragePool, "
                                  "Flatten, Reshape]\n")}});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->task.units.size(), 2u);
  EXPECT_EQ(all->sources[1], "test unit, from the card");
  EXPECT_NE(all->sources[0].find("measured with 1 thread"), std::string::npos);
  std::size_t layers = 0;
  for (const auto& node : all->task.nodes) {
    layers += node.op == "Conv" || node.op == "Gemm";
    EXPECT_EQ(node.on[0].source, "measured");
    if (node.op == "Conv") {
      EXPECT_GT(node.on[0].us, 0);
    }
  }
  EXPECT_GT(layers, 3u);
  // Without Gemm the head alone has to run on the processor; wherever convolutions go, it is listed with its reason.
  auto less = partition_model(
      {kDigits,
       {card(std::string(kCard) + "ops: [Conv, Relu, Add, MaxPool, AveragePool, GlobalAveragePool, Flatten, "
                                  "Reshape]\n")}});
  ASSERT_TRUE(less) << less.error().message;
  const auto fallbacks = search::partition::fallbacks_of(less->task, less->plan.unit_of);
  ASSERT_EQ(fallbacks.size(), 1u);
  EXPECT_EQ(less->task.nodes[fallbacks[0].node].op, "Gemm");
  EXPECT_EQ(fallbacks[0].reason, "\"test unit\" does not list Gemm");
  EXPECT_TRUE(less->plan.proved_optimal);
}

TEST_F(PartitionFiles, BytesOfValuesAreThoseOfTheNetwork) {
  auto found = partition_model({kDigits, {card(std::string(kCard) + "ops: [Conv]\n")}});
  ASSERT_TRUE(found) << found.error().message;
  for (const auto& value : found->task.values) {
    if (value.name == "image") {
      EXPECT_EQ(value.bytes, 256);  // [1, 1, 8, 8] float32
    }
    if (value.name == "logits") {
      EXPECT_TRUE(value.is_output);
      EXPECT_EQ(value.bytes, 40);  // 10 float32
    }
  }
  const auto& link = found->task.links[0][1];
  EXPECT_EQ(link.start_us, 2);
  EXPECT_EQ(link.flush_us, 3);
  EXPECT_EQ(link.bytes_per_us, 1000);
}

TEST_F(PartitionFiles, WrongCardsAreNamed) {
  const auto said = [&](const std::string& text) {
    auto found = partition_model({kDigits, {card(text)}});
    return found ? std::string("nothing") : found.error().message;
  };
  EXPECT_NE(said("name: x\nkind: npu\n").find("expected the key \"peak_gops\" for a card of kind npu, found none"),
            std::string::npos);
  EXPECT_NE(said(std::string(kCard) + "ops: [Konv]\n")
                .find("expected names of ONNX operators, found \"Konv\"; did you "
                      "mean \"Conv\"?"),
            std::string::npos)
      << said(std::string(kCard) + "ops: [Konv]\n");
  EXPECT_NE(said("name: x\nkind: cpu\n").find("expected gpu or npu, found cpu"), std::string::npos);
  EXPECT_NE(
      said("name: x\nkind: npu\nlaunch: 20 %\npeak_gops: 1\nbandwidth_gb_s: 1\nops: [Conv]\nshared_memory: true\n")
          .find("expected a time like \"20 us\", found a share"),
      std::string::npos);
  EXPECT_NE(said("name: x\nkind: npu\npeak_gops: -1\n").find("peak_gops"), std::string::npos);
  EXPECT_NE(partition_model({kDigits, {}}).error().message.find("at least one device card, found none"),
            std::string::npos);
  PartitionOptions options{kDigits, {card(std::string(kCard) + "ops: [Conv]\n")}};
  options.solver = "magic";
  EXPECT_NE(partition_model(options).error().message.find("expected one of exact, rules, greedy, annealing, genetic"),
            std::string::npos);
}

constexpr const char* kMachine =
    "array_rows: 4\narray_columns: 2\nscratchpad: 4096 B\nclock_mhz: 100\nmac_start_cycles: 3\n"
    "requantize_per_cycle: 2\ndma_start_cycles: 10\n";

TEST_F(PartitionFiles, ACardTellsWhatIsInsideAnNpu) {
  const auto found = load_target(card(std::string(kCard) + kMachine + "ops: [Conv]\n"), TargetUse::partition);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_TRUE(found->machine);
  EXPECT_EQ(found->machine->name, "test unit");
  EXPECT_EQ(found->machine->array_rows, 4u);
  EXPECT_EQ(found->machine->array_columns, 2u);
  EXPECT_EQ(found->machine->scratchpad_bytes, 4096u);
  EXPECT_EQ(found->machine->clock_mhz, 100);
  EXPECT_EQ(found->machine->bandwidth_mb_s, 10e3);  // 10 GB/s
  EXPECT_EQ(found->machine->mac_cycles, 1u);
  EXPECT_EQ(found->machine->mac_start_cycles, 3u);
  EXPECT_EQ(found->machine->requantize_per_cycle, 2u);
  EXPECT_EQ(found->machine->dma_start_cycles, 10u);
  EXPECT_DOUBLE_EQ(found->transfer_us(500), 2 + 0.5 + 3);  // start, 1 GB/s, flush
  EXPECT_FALSE(load_target(card(std::string(kCard) + "ops: [Conv]\n"), TargetUse::partition)->machine);
}

TEST_F(PartitionFiles, WrongFiguresOfAnArrayAreNamed) {
  const auto said = [&](const std::string& text) {
    const auto found = load_target(card(text), TargetUse::partition);
    return found ? std::string("nothing") : found.error().message;
  };
  const std::string good = std::string(kCard) + "ops: [Conv]\n";
  EXPECT_NE(said(good + "array_rows: 4\n").find("expected the key \"scratchpad\" beside the other figures of an array"),
            std::string::npos);
  EXPECT_NE(said(good + "array_rows: 0\n").find("array_rows"), std::string::npos);
  const std::string without =
      "array_rows: 4\narray_columns: 2\nclock_mhz: 100\nrequantize_per_cycle: 2\n"
      "dma_start_cycles: 10\nscratchpad: ";
  EXPECT_NE(said(good + without + "20 %\n").find("expected a size like \"512 KiB\", found a share"), std::string::npos);
  EXPECT_NE(said(good + without + "2000 GB\n").find("found more than 1 TB"), std::string::npos);
  EXPECT_NE(said("name: x\nkind: gpu\npeak_gops: 1\nbandwidth_gb_s: 1\nshared_memory: true\nops: [Conv]\n" + without +
                 "1 kB\n")
                .find("expected npu beside the figures of an array, found gpu"),
            std::string::npos);
}

// A bundle of codes: what an npu simulates.
std::string coded_bundle(const std::filesystem::path& folder) {
  graph::Graph graph = test::residual_network();
  EXPECT_TRUE(graph::run_passes(graph));
  test::code_everything(graph);
  const std::string path = (folder / "net.ctkb").string();
  std::ofstream(path, std::ios::binary) << exporter::bundle_of(graph);
  return path;
}

TEST_F(PartitionFiles, LayersOfAnNpuAreCountedAndTheRestGoesByItsCard) {
  const std::string ops = "ops: [Conv, Gemm, Relu, Clip, Add, AveragePool]\n";
  auto found = partition_model({coded_bundle(folder_), {card(std::string(kCard) + kMachine + ops)}});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->sources[1], "test unit, layers simulated at 100 MHz, the rest from the card");
  std::map<std::string, const search::partition::NodeTime*> times;
  for (const auto& node : found->task.nodes) times[node.name] = &node.on[1];
  // The head, 2 rows of 16 terms to 5 codes, at 100 bytes and 100 MHz: weights, columns and codes come in 10 + 1 cycles
  // each; 4 x 3 passes of 3 + 2; 10 values, 2 a cycle; out in 10 + 1. 109 cycles in one piece, and no less in more.
  for (const char* name : {"Gemm_y", "Conv_c1", "AveragePool_smooth", "MaxPool_pooled"})
    ASSERT_TRUE(times.contains(name)) << name;
  EXPECT_EQ(times["Gemm_y"]->source, "simulated");
  EXPECT_DOUBLE_EQ(times["Gemm_y"]->us, 1.09);
  EXPECT_EQ(times["Conv_c1"]->source, "simulated");
  EXPECT_EQ(times["AveragePool_smooth"]->source, "from the card");
  EXPECT_EQ(times["MaxPool_pooled"]->us, kCannotRun);
  EXPECT_TRUE(found->runs.empty());
}

TEST_F(PartitionFiles, APlacementThatRunsGivesTheSameOutputsAndItsCosts) {
  PartitionOptions options{coded_bundle(folder_),
                           {card(std::string(kCard) + kMachine + "ops: [Conv, Gemm, Relu, Clip, Add, AveragePool]\n")}};
  options.runs = true;
  options.seconds = 0.01;
  options.solver = "rules";  // products go to the npu, whatever they take
  auto found = partition_model(options);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_GE(found->runs.size(), 1u);
  const PlacementRun& first = found->runs[0];
  EXPECT_EQ(first.on_npu, 7u);  // six convolutions and the head
  EXPECT_TRUE(first.same_outputs);
  // What the npu has no commands for stays here, though the card lists it.
  double counted = 0;
  int pools = 0;
  for (std::size_t i = 0; i < found->task.nodes.size(); ++i) {
    const auto& node = found->task.nodes[i];
    if (node.op == "AveragePool") {
      ++pools;
      EXPECT_EQ(node.on[1].us, kCannotRun) << node.name;
      EXPECT_EQ(node.on[1].reason, "the NPU has no commands for pool_average (AveragePool)");
    }
    if (first.plan.unit_of[i] == 1) counted += node.on[1].us;
  }
  EXPECT_EQ(pools, 1);
  EXPECT_GE(first.counted.compute_us, counted);
  EXPECT_DOUBLE_EQ(first.counted.total_us, first.counted.compute_us + first.counted.transfer_us +
                                               first.counted.convert_us + first.counted.launch_us);
  // Each transfer 2 + 3 us and a thousandth of its bytes; a launch each time the npu takes over: 1 us.
  EXPECT_GE(first.counted.transfer_us, 5 * first.counted.launch_us);
}

TEST_F(PartitionFiles, RunningNeedsOneNpuWhoseInsideIsKnown) {
  const std::string bundle = coded_bundle(folder_), ops = "ops: [Conv]\n";
  PartitionOptions options{bundle, {card(std::string(kCard) + ops)}};
  options.runs = true;
  auto found = partition_model(options);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("partition: --run: \"test unit\": array_rows: expected the figures of an npu's"),
            std::string::npos)
      << found.error().message;
  options.targets.push_back(options.targets[0]);
  EXPECT_NE(partition_model(options).error().message.find("expected one --target, found 2"), std::string::npos);
  std::string small = kMachine;
  small.replace(small.find("4096"), 4, "256");
  found = partition_model({bundle, {card(std::string(kCard) + small + ops)}});
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("\"test unit\": scratchpad: expected at least 320 B for the smallest tile"),
            std::string::npos)
      << found.error().message;
}

TEST_F(PartitionFiles, PipelinesStillRefuseUnitsThisBuildCannotRunOn) {
  auto found = load_target(card(std::string(kCard) + "ops: [Conv]\n"));
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("target \"npu\" needs"), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace ctk::pipeline
