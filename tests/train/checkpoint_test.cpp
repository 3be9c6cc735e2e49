#include "tests/train/trainer.h"

namespace ctk::test {
namespace {

// Eight samples [4] with classes 0, 1, 2.
class Eight final : public train::Feed {
 public:
  std::size_t count() const override { return 8; }
  Result<Batch> read(std::span<const std::size_t> samples, std::int64_t) override {
    Batch batch{{Tensor::zeros(DType::f32, {static_cast<std::int64_t>(samples.size()), 4}).value()}, {}};
    const Tensor all = varied({8, 4}, 11);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      std::ranges::copy(all.values<float>().subspan(samples[i] * 4, 4),
                        batch.inputs[0].mutable_values<float>().subspan(i * 4).begin());
      batch.labels.push_back(static_cast<std::int64_t>(samples[i] % 3));
    }
    return batch;
  }
};

// x [N, 4] -> MatMul -> three residual blocks h + v relu(w h), of which the last two share w -> MatMul -> [N, 3].
graph::Graph residual_net() {
  GraphBuilder b;
  auto h = b.node("MatMul", {b.input("x", {-1, 4}), b.constant("first", varied({4, 6}, 1))}, "h0");
  const auto shared = b.constant("shared", varied({6, 5}, 2));
  for (int i = 1; i <= 3; ++i) {
    const std::string n = std::to_string(i);
    const auto w = i == 1 ? b.constant("w1", varied({6, 5}, 3)) : shared;
    const auto inner = b.node("Relu", {b.node("MatMul", {h, w}, "m" + n)}, "r" + n);
    const auto back =
        b.node("MatMul", {inner, b.constant("v" + n, varied({5, 6}, 4u + static_cast<unsigned>(i)))}, "b" + n);
    h = b.node("Add", {h, back}, "h" + n);
  }
  b.output(b.node("MatMul", {h, b.constant("last", varied({6, 3}, 9))}, "y"));
  return std::move(b.graph);
}

Result<train::FitResult> fit(train::Trainer& trainer, const graph::Graph& net, bool checkpoints,
                             std::int64_t accumulate, std::int64_t lora_rank = 0) {
  Eight feed;
  train::FitTask task;
  task.student = &net;
  task.feed = &feed;
  task.options.optimizer = train::Optimizer::adam;
  task.options.batch_size = 4;
  task.options.accumulate = accumulate;
  task.options.lora_rank = lora_rank;
  task.options.epochs = 3;
  task.options.checkpoint_blocks = checkpoints;
  return trainer.fit(task);
}

TEST(Checkpoint, StepsHaveTheSameBitsAsWithout) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = residual_net();
  for (const std::int64_t accumulate : {1, 2}) {
    for (const std::int64_t rank : {0, 2}) {
      const auto plain = fit(*trainer, net, false, accumulate, rank),
                 saved = fit(*trainer, net, true, accumulate, rank);
      ASSERT_TRUE(plain) << plain.error().message;
      ASSERT_TRUE(saved) << saved.error().message;
      bool has_moved = false;
      for (const char* name : {"first", "w1", "shared", "v1", "v2", "v3", "last"}) {
        const Tensor& before = *net.value(*net.find_value(name)).constant;
        const Tensor& a = *plain->graph.value(*plain->graph.find_value(name)).constant;
        const Tensor& b = *saved->graph.value(*saved->graph.find_value(name)).constant;
        EXPECT_TRUE(std::ranges::equal(a.raw(), b.raw())) << name << ", accumulate " << accumulate << ", rank " << rank;
        has_moved = has_moved || !std::ranges::equal(before.raw(), a.raw());
      }
      EXPECT_TRUE(has_moved);
      EXPECT_EQ(plain->epochs.back().loss, saved->epochs.back().loss);
    }
  }
}

TEST(Checkpoint, NetworksWithoutBlocksAreTold) {
  CTK_NEED_TRAINER(trainer);
  GraphBuilder b;
  b.output(b.node("MatMul", {b.input("x", {-1, 4}), b.constant("w", varied({4, 3}))}, "y"));
  const auto found = fit(*trainer, b.graph, true, 1);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("checkpoint_blocks: expected a network with two places at least between blocks"),
            std::string::npos)
      << found.error().message;
}

// One sample of one number 1, class 1 of logits (257, 0): loss ln(e^257 + 1). bfloat16 has eight bits: 257 is 256.
TEST(Autocast, ProductsRoundToBfloat16) {
  CTK_NEED_TRAINER(trainer);
  class One final : public train::Feed {
   public:
    std::size_t count() const override { return 1; }
    Result<Batch> read(std::span<const std::size_t>, std::int64_t) override {
      return Batch{{floats({1, 1}, {1})}, {1}};
    }
  } feed;
  GraphBuilder b;
  b.output(b.node("MatMul", {b.input("x", {-1, 1}), b.constant("w", floats({1, 2}, {257, 0}))}, "y"));
  for (const bool is_narrow : {false, true}) {
    train::FitTask task;
    task.student = &b.graph;
    task.feed = &feed;
    task.options.autocast = is_narrow;
    const auto found = trainer->fit(task);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_NEAR(found->epochs[0].loss, is_narrow ? 256 : 257, 1e-3);
  }
}

}  // namespace
}  // namespace ctk::test
