#include "tests/train/trainer.h"

namespace ctk::test {
namespace {

using train::FitTask;

// One sample [2, 1], two tokens 1 and 2, each of the only class: hard and soft losses are 0.
class TwoTokens final : public train::Feed {
 public:
  explicit TwoTokens(std::vector<std::int64_t> labels) : labels_(std::move(labels)) {}
  std::size_t count() const override { return 1; }
  Result<Batch> read(std::span<const std::size_t>, std::int64_t) override {
    return Batch{{floats({1, 2, 1}, {1, 2})}, labels_};
  }

 private:
  std::vector<std::int64_t> labels_;
};

// x [1, 2, 1] -> MatMul -> h [1, 2, channels] (+ shift) -> MatMul -> one class.
graph::Graph net(const Floats& weight, const Floats& shift = {}) {
  const auto channels = static_cast<std::int64_t>(weight.size());
  GraphBuilder b;
  const auto x = b.input("x", {1, 2, 1});
  auto h = b.node("MatMul", {x, b.constant("w", floats({1, channels}, weight))}, shift.empty() ? "h" : "before");
  if (!shift.empty()) h = b.node("Add", {h, b.constant("s", floats({2, 1}, shift))}, "h");
  b.output(b.node("MatMul", {h, b.constant("v", floats({channels, 1}, Floats(weight.size(), 1)))}, "y"));
  return std::move(b.graph);
}

// One pair of values, "h" of both, token by token.
FitTask pair_task(const graph::Graph& student, const graph::Graph& teacher, TwoTokens& feed) {
  FitTask task;
  task.student = &student;
  task.teacher = &teacher;
  task.feed = &feed;
  task.features = {{*student.find_value("h"), *teacher.find_value("h")}};
  task.options.batch_size = 1;
  return task;
}

double first_loss(train::Trainer& trainer, const graph::Graph& student, const graph::Graph& teacher,
                  std::vector<std::int64_t> labels, bool is_attention = false, bool is_of_probabilities = false) {
  TwoTokens feed(std::move(labels));
  FitTask task = pair_task(student, teacher, feed);
  task.options.loss.feature_weight = 2;
  task.options.loss.feature_attention = is_attention;
  task.options.loss.feature_probabilities = is_of_probabilities;
  const auto result = trainer.fit(task);
  EXPECT_TRUE(result) << result.error().message;
  return result ? result->epochs.at(0).loss : NAN;
}

// Student [1, 2], teacher [3, 6]: squared differences 4 and 16, over the teacher's 9 and 36: 20 / 45, twice.
TEST(Features, SquaredDifferenceOverTheTeachersSquares) {
  CTK_NEED_TRAINER(trainer);
  EXPECT_NEAR(first_loss(*trainer, net({1}), net({3}), {0, 0}), 2 * 20.0 / 45, 1e-6);
}

// Teacher [2, 1]. With the second token masked: (1 - 2)^2 over 4, twice. Without: (1 + 1) over (4 + 1), twice.
TEST(Features, TokensWithoutALabelDoNotCount) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph teacher = net({1}, {1, -1});
  EXPECT_NEAR(first_loss(*trainer, net({1}), teacher, {0, -1}), 2 * 0.25, 1e-6);
  EXPECT_NEAR(first_loss(*trainer, net({1}), teacher, {0, 0}), 2 * 0.4, 1e-6);
}

// Energies [1, 4] and [4, 1], each over its length, the root of 17: (3^2 + 3^2) / 17, twice.
TEST(Features, AttentionComparesWhereTheEnergyLies) {
  CTK_NEED_TRAINER(trainer);
  EXPECT_NEAR(first_loss(*trainer, net({1}), net({1}, {1, -1}), {0, 0}, true), 2 * 18.0 / 17, 1e-6);
  EXPECT_NEAR(first_loss(*trainer, net({1}), net({3, 3}), {0, 0}, true), 0, 1e-6);  // of any number of channels
}

// x [1, 2, 1] -> Attention of one head, queries a x, keys x -> one class.
graph::Graph attending(float a) {
  GraphBuilder b;
  const auto x = b.input("x", {1, 2, 1});
  const auto q = b.node("MatMul", {x, b.constant("a", floats({1, 1}, {a}))}, "q");
  const auto h =
      b.node("Attention", {q, x, x}, "h", {{"q_num_heads", std::int64_t{1}}, {"kv_num_heads", std::int64_t{1}}});
  b.output(b.node("MatMul", {h, b.constant("v", floats({1, 1}, {1}))}, "y"));
  return std::move(b.graph);
}

// Tokens 1 and 2. The student gives both keys a half; with a = ln 3 scores are ln 3 and 2 ln 3 for the first query,
// twice that for the second: weights (1/4, 3/4) and (1/10, 9/10). KL to a half: sum of p ln(2 p).
TEST(Features, ProbabilitiesOfAttentionAreComparedByTheirDivergence) {
  CTK_NEED_TRAINER(trainer);
  const double first = 0.25 * std::log(0.5) + 0.75 * std::log(1.5), second = 0.1 * std::log(0.2) + 0.9 * std::log(1.8);
  const auto loss = [&](std::vector<std::int64_t> labels) {
    return first_loss(*trainer, attending(0), attending(std::log(3.0f)), std::move(labels), false, true);
  };
  EXPECT_NEAR(loss({0, 0}), 2 * (first + second) / 2, 1e-6);
  EXPECT_NEAR(loss({0, -1}), 2 * first, 1e-6);  // the second token does not count
}

TEST(Features, ProbabilitiesOfOtherValuesAreRefused) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph student = net({1}), teacher = net({3});
  TwoTokens feed({0, 0});
  FitTask task = pair_task(student, teacher, feed);
  task.options.loss.feature_probabilities = true;
  const auto result = trainer->fit(task);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("features: pair 1: expected outputs of Attention nodes"), std::string::npos)
      << result.error().message;
}

// The teacher's three channels are multiples of the student's one: a linear map finds them, and is no part of the
// result.
TEST(Features, OtherNumbersOfChannelsMeetThroughALearnedMap) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph student = net({1}), teacher = net({1, -2, 3});
  TwoTokens feed({0, 0});
  FitTask task = pair_task(student, teacher, feed);
  task.options.epochs = 200;
  task.options.learning_rate = 0.05;
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_LT(result->epochs.back().loss, 1e-3 * result->epochs.front().loss);
  EXPECT_EQ(result->graph.value_capacity(), student.value_capacity());
}

// What a teacher that is not there said: logits [0, ln 3] at temperature 1 against the student's [0, 0]:
// KL = 1/4 ln(1/4 / 1/2) + 3/4 ln(3/4 / 1/2) = 0.130812.
TEST(Features, RecordedOutputsAreATeacher) {
  CTK_NEED_TRAINER(trainer);
  class Recorded final : public train::Feed {
   public:
    std::size_t count() const override { return 1; }
    Result<Batch> read(std::span<const std::size_t>, std::int64_t) override {
      Batch batch{{floats({1, 1}, {0})}, {}};
      batch.teacher = floats({1, 2}, {0, std::log(3.0f)});
      return batch;
    }
  };
  GraphBuilder b;
  const auto x = b.input("x", {-1, 1});
  b.output(b.node("MatMul", {x, b.constant("w", floats({1, 2}, {1, 1}))}, "y"));
  Recorded feed;
  FitTask task;
  task.student = &b.graph;
  task.feed = &feed;
  task.options.loss.temperature = 1;
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_NEAR(result->epochs.at(0).loss, 0.130812, 1e-5);
}

}  // namespace
}  // namespace ctk::test
