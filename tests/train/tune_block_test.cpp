#include "tests/train/trainer.h"

namespace ctk::test {
namespace {

// x [N, 1] -> Gemm of one 8-bit code -> y.
graph::Graph one_code(std::int8_t code, float scale) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 1});
  const auto w = b.constant("w", floats({1, 1}, {0}));
  b.output(b.node("Gemm", {x, w}, "y", {{"transB", std::int64_t{1}}}));
  QuantTensor coded;
  coded.scheme = *parse_scheme("w8a16_c");
  coded.codes = Tensor::of<std::int8_t>({1, 1}, std::vector<std::int8_t>{code});
  coded.scales = {scale};
  b.graph.value(w).constant.reset();
  b.graph.value(w).quantized = std::make_shared<const QuantTensor>(std::move(coded));
  b.graph.node(b.graph.order()[0]).scheme = *parse_scheme("w8a16_c");
  return std::move(b.graph);
}

train::BlockTask task_of(const graph::Graph& block, const graph::Graph& real, const Floats& targets) {
  train::BlockTask task;
  task.block = &block;
  task.floats = &real;
  task.weights = {"w"};
  task.compared = {0};
  task.steps = 1;
  for (float target : targets) {
    task.inputs.push_back({floats({1, 1}, {1})});
    task.targets.push_back({floats({1, 1}, {target})});
  }
  return task;
}

graph::Graph with_float(const graph::Graph& coded, float weight) {
  graph::Graph real = coded.clone();
  const graph::ValueId w = *real.find_value("w");
  real.value(w).quantized.reset();
  real.value(w).constant = floats({1, 1}, {weight});
  return real;
}

// Code 2, scale 0.5, float 1.2: place 2.4, value 1, target 1.5. Error 0.25 / 2.25 = 1/9. d value / d s = 2 - 2.4 < 0.
// One step at full rate: the value must grow, so w rises by half a step less a thousandth, to 1.4495, and s falls by a
// quarter to 0.375. Place 1.4495 / 0.375 = 3.865: code 4, value 1.5. Error 0.
TEST(TuneBlock, OneStepMovesRoundingAndScaleAsWorkedByHand) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph block = one_code(2, 0.5f), real = with_float(block, 1.2f);
  const auto found = trainer->tune_block(task_of(block, real, {1.5f}));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_NEAR(found->error_before, 1.0 / 9, 1e-6);
  EXPECT_EQ(found->error, 0);
  EXPECT_EQ(found->best_step, 1);
  const auto codes = found->block.value(*found->block.find_value("w")).quantized;
  EXPECT_EQ(unpack_codes(*codes), std::vector<std::int8_t>{4});
  EXPECT_EQ(codes->scales, std::vector<float>{0.375f});
}

// The batch that is held out wants the value as it is: what the other one taught makes it worse there.
TEST(TuneBlock, WhatIsWorseOnHeldOutBatchesIsNotKept) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph block = one_code(2, 0.5f), real = with_float(block, 1.2f);
  train::BlockTask task = task_of(block, real, {1.5f, 1.0f});
  task.held_out = 1;
  const auto found = trainer->tune_block(task);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->best_step, 0);
  EXPECT_EQ(found->error, 0);
  const auto codes = found->block.value(*found->block.find_value("w")).quantized;
  EXPECT_EQ(unpack_codes(*codes), std::vector<std::int8_t>{2});
  EXPECT_EQ(codes->scales, std::vector<float>{0.5f});
}

TEST(TuneBlock, RefusesABlockWithoutCodesToMove) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph block = one_code(2, 0.5f), real = with_float(block, 1.2f);
  train::BlockTask task = task_of(block, real, {1.5f});
  task.weights = {"other"};
  const auto found = trainer->tune_block(task);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("expected weights with integer codes"), std::string::npos);
}

TEST(TuneBlock, StopsAtALossThatIsNoNumber) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph block = one_code(2, 0.5f), real = with_float(block, 1.2f);
  const auto found = trainer->tune_block(task_of(block, real, {NAN}));
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("found a loss of \"nan\""), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace ctk::test
