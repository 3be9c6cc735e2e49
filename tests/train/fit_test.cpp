#include <sys/resource.h>

#include <cmath>

#include "tests/train/trainer.h"

namespace ctk::test {
namespace {

using train::FitOptions;
using train::FitTask;

// Samples that are given, whatever the epoch.
class FixedFeed final : public train::Feed {
 public:
  FixedFeed(Tensor inputs, Ints labels) : inputs_(std::move(inputs)), labels_(std::move(labels)) {}
  std::size_t count() const override { return static_cast<std::size_t>(inputs_.shape()[0]); }
  Result<Batch> read(std::span<const std::size_t> samples, std::int64_t) override {
    Shape shape = inputs_.shape();
    const std::size_t row = inputs_.size() / count();
    shape[0] = static_cast<std::int64_t>(samples.size());
    Tensor picked = Tensor::zeros(DType::f32, shape).value();
    Batch batch;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const float* from = inputs_.values<float>().data() + samples[i] * row;
      std::copy(from, from + row, picked.mutable_values<float>().data() + i * row);
      if (!labels_.empty()) batch.labels.push_back(labels_[samples[i]]);
    }
    batch.inputs.push_back(std::move(picked));
    return batch;
  }

 private:
  Tensor inputs_;
  Ints labels_;
};

// x [N, K] -> one Gemm -> logits.
graph::Graph linear(std::int64_t inputs, const Tensor& weight, const Tensor& bias, std::int64_t batch = -1) {
  GraphBuilder b;
  const auto x = b.input("x", {batch, inputs});
  b.output(b.node("Gemm", {x, b.constant("w", weight), b.constant("b", bias)}, "y", {{"transB", std::int64_t{1}}}));
  return std::move(b.graph);
}

// x [N, 2, size, size] -> Conv 3x3 -> Relu -> Conv 3x3 -> Relu -> mean -> Gemm to 3 classes.
graph::Graph small_cnn(unsigned seed = 1, std::int64_t size = 6) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 2, size, size});
  const Attrs same{{"pads", Ints{1, 1, 1, 1}}};
  const auto c1 = b.node(
      "Conv", {x, b.constant("w1", varied({8, 2, 3, 3}, seed)), b.constant("b1", varied({8}, seed + 1))}, "c1", same);
  const auto c2 =
      b.node("Conv", {b.node("Relu", {c1}, "r1"), b.constant("w2", varied({8, 8, 3, 3}, seed + 2))}, "c2", same);
  const auto flat = b.node("Flatten", {b.node("GlobalAveragePool", {b.node("Relu", {c2}, "r2")}, "g")}, "flat");
  b.output(b.node("Gemm", {flat, b.constant("w3", varied({3, 8}, seed + 3)), b.constant("b3", varied({3}, seed + 4))},
                  "y", {{"transB", std::int64_t{1}}}));
  return std::move(b.graph);
}

// 96 pictures of noise to which class c adds a bright column 2 c.
FixedFeed columns() {
  Tensor x = varied({96, 2, 6, 6}, 21);
  Ints labels;
  for (std::size_t n = 0; n < 96; ++n) {
    labels.push_back(static_cast<std::int64_t>(n % 3));
    for (std::size_t y = 0; y < 6; ++y) x.mutable_values<float>()[(n * 12 + y) * 6 + 2 * (n % 3)] += 2.0f;
  }
  return {std::move(x), std::move(labels)};
}

FitOptions options_of(std::int64_t epochs, double rate) {
  FitOptions options;
  options.epochs = epochs;
  options.batch_size = 32;
  options.learning_rate = rate;
  return options;
}

std::vector<float> constant_of(const graph::Graph& graph, const std::string& name) {
  return values_of(*graph.value(*graph.find_value(name)).constant);
}

bool are_equal(const graph::Graph& a, const graph::Graph& b) {
  for (const char* name : {"w1", "b1", "w2", "w3", "b3"}) {
    if (constant_of(a, name) != constant_of(b, name)) return false;
  }
  return true;
}

// One sample x = [1, 2], label 0, logits [0, 0]: p = [0.5, 0.5], dL/dW = (p - y) x^T = [[-0.5, -1], [0.5, 1]], dL/db =
// [-0.5, 0.5]. SGD with Nesterov 0.9 at rate 0.1, decay 0.1 of W only, W = [[1, 1], [1, 1]]: g = dL/dW + 0.1 W =
// [[-0.4, -0.9], [0.6, 1.1]]; the first step is 1.9 g: W = 1 - 0.19 g = [[1.076, 1.171], [0.886, 0.791]];
// b = 0.19 * [0.5, -0.5].
TEST(Fit, TheFirstStepOfSgdIsThatWorkedByHand) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = linear(2, floats({2, 2}, {1, 1, 1, 1}), floats({2}, {0, 0}));
  FixedFeed feed(floats({1, 2}, {1, 2}), {0});
  FitTask task{&net, nullptr, nullptr, &feed, options_of(1, 0.1)};
  task.options.weight_decay = 0.1;
  task.options.schedule = train::Schedule::constant;
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  const auto w = constant_of(result->graph, "w"), b = constant_of(result->graph, "b");
  const float expected[] = {1.076f, 1.171f, 0.886f, 0.791f};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(w[i], expected[i], 1e-6f) << i;
  EXPECT_NEAR(b[0], 0.095f, 1e-6f);
  EXPECT_NEAR(b[1], -0.095f, 1e-6f);
}

// The same of a sample mixed out of labels 0 and 1, three to one: dL/db = [0.5 - 0.75, 0.5 - 0.25], b = 0.19 * 0.25.
TEST(Fit, AMixedSampleHasBothLabelsInTheirShares) {
  CTK_NEED_TRAINER(trainer);
  class Mixed final : public train::Feed {
   public:
    std::size_t count() const override { return 1; }
    Result<Batch> read(std::span<const std::size_t>, std::int64_t) override {
      return Batch{{floats({1, 2}, {1, 2})}, {0}, {1}, 0.75};
    }
  };
  const graph::Graph net = linear(2, floats({2, 2}, {1, 1, 1, 1}), floats({2}, {0, 0}));
  Mixed feed;
  FitTask task{&net, nullptr, nullptr, &feed, options_of(1, 0.1)};
  task.options.schedule = train::Schedule::constant;
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_NEAR(constant_of(result->graph, "b")[0], 0.0475f, 1e-6f);
  EXPECT_NEAR(constant_of(result->graph, "b")[1], -0.0475f, 1e-6f);
}

// The first step of Adam is rate * g / (|g| + 1e-8): 0.1 each way. AdamW takes rate * decay * w off as well.
TEST(Fit, TheFirstStepOfAdamIsTheRateItself) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = linear(2, floats({2, 2}, {1, 1, 1, 1}), floats({2}, {0, 0}));
  FixedFeed feed(floats({1, 2}, {1, 2}), {0});
  FitTask task{&net, nullptr, nullptr, &feed, options_of(1, 0.1)};
  task.options.optimizer = train::Optimizer::adamw;
  task.options.weight_decay = 0.5;
  task.options.schedule = train::Schedule::constant;
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  const auto w = constant_of(result->graph, "w");
  EXPECT_NEAR(w[0], 1 - 0.05 + 0.1, 1e-6f);
  EXPECT_NEAR(w[2], 1 - 0.05 - 0.1, 1e-6f);
}

// Batches of four, whole or one sample at a time: the same gradients, so the same steps up to the order of sums.
TEST(Fit, AGraphOfFixedBatchTakesABatchInParts) {
  CTK_NEED_TRAINER(trainer);
  std::vector<std::vector<float>> weights;
  for (const std::int64_t batch : {-1, 1, 2}) {
    const graph::Graph net = linear(3, varied({4, 3}, 5), varied({4}, 6), batch);
    FixedFeed feed(varied({8, 3}, 7), {0, 1, 2, 3, 3, 2, 1, 0});
    FitTask task{&net, nullptr, nullptr, &feed, options_of(3, 0.5)};
    task.options.batch_size = 4;
    const auto result = trainer->fit(task);
    ASSERT_TRUE(result) << result.error().message;
    weights.push_back(constant_of(result->graph, "w"));
  }
  for (std::size_t i = 0; i < weights[0].size(); ++i) {
    EXPECT_NEAR(weights[0][i], weights[1][i], 1e-6f);
    EXPECT_NEAR(weights[0][i], weights[2][i], 1e-6f);
  }
}

TEST(Fit, LearnsAndGivesTheSameBitsAgain) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = small_cnn();
  FixedFeed feed = columns();
  const FitTask task{&net, nullptr, nullptr, &feed, options_of(10, 0.1)};
  const auto first = trainer->fit(task), second = trainer->fit(task);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_LT(first->epochs.back().loss, 0.3 * first->epochs.front().loss);
  EXPECT_TRUE(are_equal(first->graph, second->graph));
}

TEST(Fit, ATeacherAloneIsEnough) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = small_cnn(1), teacher = small_cnn(50);
  FixedFeed labelled = columns();
  std::vector<std::size_t> all(96);
  for (std::size_t i = 0; i < 96; ++i) all[i] = i;
  FixedFeed feed(labelled.read(all, 0)->inputs[0], {});
  const auto result = trainer->fit({&net, nullptr, &teacher, &feed, options_of(10, 0.05)});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_LT(result->epochs.back().loss, 0.5 * result->epochs.front().loss);
}

// A run that is stopped and goes on from its saved state ends in the same bits as one that was not.
TEST(Fit, AResumedRunEndsInTheBitsOfAStraightOne) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = small_cnn();
  FixedFeed feed = columns();
  FitTask task{&net, nullptr, nullptr, &feed, options_of(4, 0.1)};
  task.options.ema = 0.5;
  task.score = [&](const graph::Graph& graph) -> Result<double> { return constant_of(graph, "w3")[0]; };
  const auto straight = trainer->fit(task);
  ASSERT_TRUE(straight) << straight.error().message;
  std::string saved;
  task.save = [&](const std::string& state) {
    saved = state;
    return Status();
  };
  task.on_step = [&](const train::Progress& progress) {
    return progress.step == 5 ? Status(Error{ErrorCode::interrupted, "stopped"}) : Status();  // in the second epoch
  };
  const auto stopped = trainer->fit(task);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::interrupted);
  ASSERT_FALSE(saved.empty());
  task.resume = saved;
  std::int64_t steps = 0;
  task.on_step = [&](const train::Progress&) {
    ++steps;
    return Status();
  };
  const auto resumed = trainer->fit(task);
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(steps, 12 - 5);
  EXPECT_TRUE(are_equal(straight->graph, resumed->graph));
  EXPECT_EQ(straight->best_epoch, resumed->best_epoch);
  task.resume = saved.substr(0, saved.size() / 2);
  const auto damaged = trainer->fit(task);
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find("saved state"), std::string::npos) << damaged.error().message;
}

TEST(Fit, TheStartIsKeptWhenNothingBeatsIt) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = small_cnn();
  FixedFeed feed = columns();
  FitTask task{&net, nullptr, nullptr, &feed, options_of(5, 0.1)};
  task.options.patience = 2;
  int asked = 0;
  task.score = [&](const graph::Graph&) -> Result<double> { return asked++ == 0 ? 1.0 : 0.5; };
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->best_epoch, -1);
  EXPECT_EQ(result->epochs.size(), 2u);  // patience
  EXPECT_TRUE(are_equal(result->graph, net));
}

// With a learning rate of nearly nothing the renewed normalizations are the identity, and folding gives the net back.
TEST(Fit, RenewedNormsStartAsTheIdentity) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = small_cnn();
  FixedFeed feed = columns();
  const auto result = trainer->fit({&net, nullptr, nullptr, &feed, options_of(1, 1e-12)});
  ASSERT_TRUE(result) << result.error().message;
  const std::vector<Tensor> inputs{varied({4, 2, 6, 6}, 77)};
  // Running statistics have moved towards those of three batches of 32: three tenths of a few per cent.
  EXPECT_LE(difference(run_ours(net, inputs)[0], run_ours(result->graph, inputs)[0]), 0.03);
  EXPECT_TRUE(result->graph.find_value("Conv_c2_bias").has_value());  // c2 had none
}

// Statistics of before say nothing; a tenth of each of three batches would leave 0.73 of them.
TEST(Fit, StatisticsAreThoseOfTheParametersAsTheyAre) {
  CTK_NEED_TRAINER(trainer);
  GraphBuilder b;
  const auto x = b.input("x", {-1, 2, 6, 6});
  const auto norm = b.node("BatchNormalization",
                           {x, b.constant("factor", floats({2}, {1, 1})), b.constant("offset", floats({2}, {0, 0})),
                            b.constant("mean", floats({2}, {5, -5})), b.constant("variance", floats({2}, {9, 9}))},
                           "n");
  const auto flat = b.node("Flatten", {b.node("GlobalAveragePool", {b.node("Relu", {norm}, "r")}, "g")}, "flat");
  b.output(b.node("Gemm", {flat, b.constant("w", varied({3, 2}, 3)), b.constant("bias", varied({3}, 4))}, "y",
                  {{"transB", std::int64_t{1}}}));
  FixedFeed feed = columns();
  const auto result = trainer->fit({&b.graph, nullptr, nullptr, &feed, options_of(1, 1e-12)});
  ASSERT_TRUE(result) << result.error().message;
  std::vector<std::size_t> all(96);
  for (std::size_t i = 0; i < 96; ++i) all[i] = i;
  const Tensor inputs = feed.read(all, 0)->inputs[0];
  double sums[2] = {0, 0};
  for (std::size_t i = 0; i < inputs.size(); ++i) sums[i / 36 % 2] += inputs.values<float>()[i];
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(constant_of(result->graph, "mean")[c], sums[c] / (96 * 36), 1e-5);
    EXPECT_LT(constant_of(result->graph, "variance")[c], 3.0f);
  }
}

TEST(Fit, AverageIsWhatIsKept) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = linear(2, floats({2, 2}, {1, 1, 1, 1}), floats({2}, {0, 0}));
  FixedFeed feed(floats({1, 2}, {1, 2}), {0});
  FitTask task{&net, nullptr, nullptr, &feed, options_of(1, 0.1)};
  task.options.schedule = train::Schedule::constant;
  task.options.ema = 0.75;
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  // dL/db = [-0.5, 0.5], the step is 1.9 * 0.1 * 0.5 = 0.095, of which a quarter is taken.
  EXPECT_NEAR(constant_of(result->graph, "b")[0], 0.095 / 4, 1e-6);
}

// Each activation here is 4 MiB, 1,024 pages. Once the heap has grown, a step takes none of them anew from the system;
// a late step in which it grows once more is no fault of the others, so the median step counts.
TEST(Fit, StepsKeepTheirMemory) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = small_cnn(1, 64);
  FixedFeed feed(varied({32 * 12, 2, 64, 64}), Ints(32 * 12, 1));
  FitTask task{&net, nullptr, nullptr, &feed, options_of(1, 1e-3)};
  std::vector<long> faults;
  task.on_step = [&](const train::Progress&) {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    faults.push_back(use.ru_minflt);
    return Status();
  };
  ASSERT_TRUE(trainer->fit(task));
  ASSERT_EQ(faults.size(), 12u);
#ifdef __GLIBC__
  std::vector<long> taken;
  for (std::size_t step = 5; step < faults.size(); ++step) taken.push_back(faults[step] - faults[step - 1]);
  std::ranges::nth_element(taken, taken.begin() + 3);
  EXPECT_LT(taken[3], 512);  // thousands where pages go back after each step
#endif
}

TEST(Fit, ALossThatIsNoNumberStopsAndSaysWhere) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = linear(2, floats({2, 2}, {1, 1, 1, 1}), floats({2}, {0, 0}));
  FixedFeed feed(floats({2, 2}, {1e20f, 2, -1e20f, 3}), {0, 1});
  FitTask task{&net, nullptr, nullptr, &feed, options_of(3, 1e25)};
  task.options.batch_size = 1;
  const auto result = trainer->fit(task);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::config);
  EXPECT_NE(result.error().message.find("epoch 1, step 2 of 2: expected a finite loss"), std::string::npos)
      << result.error().message;
  EXPECT_NE(result.error().message.find("at a learning rate of"), std::string::npos);
}

TEST(Fit, SaysWhatDoesNotFit) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = small_cnn(), other = linear(2, varied({2, 2}), varied({2}));
  FixedFeed feed = columns();
  const auto says = [&](FitTask task) {
    const auto result = trainer->fit(task);
    return result ? std::string("no error") : result.error().message;
  };
  EXPECT_NE(says({&net, nullptr, nullptr, &feed, options_of(1, 0)})
                .find("learning_rate: expected a number above 0, found \"0\""),
            std::string::npos);
  FitOptions few = options_of(1, 0.1);
  few.batch_size = 4;
  EXPECT_NE(says({&net, nullptr, nullptr, &feed, few})
                .find("batch normalization: expected at least 8 samples a batch, found 4"),
            std::string::npos);
  EXPECT_NE(says({&net, nullptr, &other, &feed, options_of(1, 0.1)}).find("teacher: "), std::string::npos);
  FixedFeed unlabelled(varied({16, 2, 6, 6}), {});
  EXPECT_NE(says({&net, nullptr, nullptr, &unlabelled, options_of(1, 0.1)}).find("expected labels or a teacher"),
            std::string::npos);
}

}  // namespace
}  // namespace ctk::test
