#include "tests/train/trainer.h"

namespace ctk::test {
namespace {

// Rows [6] of noise, each of one of four classes.
class Rows final : public train::Feed {
 public:
  std::size_t count() const override { return 32; }
  Result<Batch> read(std::span<const std::size_t> samples, std::int64_t) override {
    Batch batch{{varied({static_cast<std::int64_t>(samples.size()), 6}, 5)}, {}};
    for (std::size_t i = 0; i < samples.size(); ++i) batch.labels.push_back(static_cast<std::int64_t>(i % 4));
    return batch;
  }
};

graph::Graph net() {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 6});
  const auto h = b.node("Gemm", {x, b.constant("w", varied({8, 6}, 1)), b.constant("b", varied({8}, 2))}, "h",
                        {{"transB", std::int64_t{1}}});
  b.output(b.node("MatMul", {b.node("Relu", {h}, "r"), b.constant("v", varied({8, 4}, 3))}, "y"));
  return std::move(b.graph);
}

train::FitTask task_of(const graph::Graph& student, train::Feed& feed) {
  train::FitTask task;
  task.student = &student;
  task.feed = &feed;
  task.options.batch_size = 32;
  task.options.epochs = 20;
  task.options.learning_rate = 0.1;
  task.options.lora_rank = 1;
  return task;
}

Tensor constant_of(const graph::Graph& graph, const std::string& name) {
  const graph::Value& value = graph.value(*graph.find_value(name));
  return value.quantized ? dequantize(*value.quantized) : *value.constant;
}

// The difference of rank 1 that training makes of W [8, 6]: every minor of two rows and columns is nothing, up to what
// float32 leaves of the difference of two weights (1e-7 each way).
TEST(Lora, WeightsMoveByALowRankAndNothingElseMoves) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph student = net();
  Rows feed;
  const auto result = trainer->fit(task_of(student, feed));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_LT(result->epochs.back().loss, result->epochs.front().loss);
  EXPECT_EQ(values_of(constant_of(result->graph, "b")), values_of(constant_of(student, "b")));
  const Floats before = values_of(constant_of(student, "w")), after = values_of(constant_of(result->graph, "w"));
  const auto moved = [&](std::size_t r, std::size_t c) {
    return static_cast<double>(after[r * 6 + c]) - static_cast<double>(before[r * 6 + c]);
  };
  double most = 0, minor = 0;
  for (std::size_t r = 0; r < 7; ++r) {
    for (std::size_t c = 0; c < 5; ++c) {
      most = std::max(most, std::abs(moved(r, c)));
      minor = std::max(minor, std::abs(moved(r, c) * moved(r + 1, c + 1) - moved(r, c + 1) * moved(r + 1, c)));
    }
  }
  EXPECT_GT(most, 1e-3);
  EXPECT_LT(minor, 1e-6 * std::max(1.0, most));
  EXPECT_EQ(result->graph.value_capacity(), student.value_capacity());  // merged: no nodes, no constants of its own
}

// In front of rounding: codes come out, of the same scales.
TEST(Lora, IsMergedIntoCodes) {
  CTK_NEED_TRAINER(trainer);
  graph::Graph coded = net();
  const graph::ValueId w = *coded.find_value("w");
  QuantTensor codes;
  codes.scheme = *parse_scheme("w8a16_c");
  codes.scales = Floats(8, 1.0f / 127);
  std::vector<std::int8_t> rounded;
  for (float value : values_of(*coded.value(w).constant)) {
    rounded.push_back(static_cast<std::int8_t>(std::nearbyint(value * 127)));
  }
  codes.codes = Tensor::of<std::int8_t>({8, 6}, rounded);
  const graph::Graph real = coded.clone();
  coded.value(w).constant.reset();
  coded.value(w).quantized = std::make_shared<const QuantTensor>(codes);
  Rows feed;
  train::FitTask task = task_of(coded, feed);
  task.floats = &real;
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_LT(result->epochs.back().loss, result->epochs.front().loss);
  const QuantTensor& after = *result->graph.value(w).quantized;
  EXPECT_EQ(after.scales, codes.scales);
  EXPECT_NE(unpack_codes(after), rounded);
}

TEST(Lora, AsksForProducts) {
  CTK_NEED_TRAINER(trainer);
  GraphBuilder b;
  const auto x = b.input("x", {-1, 6});
  b.output(b.node("PRelu", {x, b.constant("slope", varied({6}, 2))}, "y"));
  Rows feed;
  const auto result = trainer->fit(task_of(b.graph, feed));
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("lora_rank: expected matrix products"), std::string::npos)
      << result.error().message;
}

}  // namespace
}  // namespace ctk::test
