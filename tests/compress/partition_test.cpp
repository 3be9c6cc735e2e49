#include "compress/partition.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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

TEST_F(PartitionFiles, PipelinesStillRefuseUnitsThisBuildCannotRunOn) {
  auto found = load_target(card(std::string(kCard) + "ops: [Conv]\n"));
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("target \"npu\" needs"), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace ctk::pipeline
