#include <cstdlib>

#include "core/file.h"
#include "data/npy.h"
#include "runtime/bundle.h"
#include "tests/train/trainer.h"

namespace ctk::test {
namespace {

// x [N, K] -> Gemm of 8-bit codes [M, K] -> logits; activations stay floats.
graph::Graph coded_linear(const std::vector<std::int8_t>& codes, const Floats& scales, std::int64_t inputs) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, inputs});
  const auto channels = static_cast<std::int64_t>(scales.size());
  const auto w = b.constant("w", varied({channels, inputs}));
  b.output(b.node("Gemm", {x, w}, "y", {{"transB", std::int64_t{1}}}));
  QuantTensor coded;
  coded.scheme = *parse_scheme("w8a16_c");
  coded.codes = Tensor::of<std::int8_t>({channels, inputs}, codes);
  coded.scales = scales;
  b.graph.value(w).constant.reset();
  b.graph.value(w).quantized = std::make_shared<const QuantTensor>(std::move(coded));
  b.graph.node(b.graph.order()[0]).scheme = *parse_scheme("w8a16_c");
  return std::move(b.graph);
}

// The one sample [1] of label 0.
class OneSample final : public train::Feed {
 public:
  explicit OneSample(float value = 1) : value_(value) {}
  std::size_t count() const override { return 1; }
  Result<Batch> read(std::span<const std::size_t>, std::int64_t) override {
    return Batch{{floats({1, 1}, {value_})}, {0}};
  }

 private:
  float value_;
};

// Pictures of alternating classes.
class Pictures final : public train::Feed {
 public:
  explicit Pictures(Tensor pictures) : pictures_(std::move(pictures)) {}
  std::size_t count() const override { return static_cast<std::size_t>(pictures_.shape()[0]); }
  Result<Batch> read(std::span<const std::size_t> samples, std::int64_t) override {
    Batch batch{{pictures_}, {}};  // in one batch their order is nothing
    for (std::size_t i = 0; i < samples.size(); ++i) batch.labels.push_back(static_cast<std::int64_t>(i % 2));
    return batch;
  }

 private:
  Tensor pictures_;
};

// Codes [2, 2], scales 0.5, floats 1.2 and 1.0: both read as 1.0, logits [1, 1], gradient of the values [-0.5, 0.5].
// v = [2.4, 2]. Scales: d value / d s = code - v = [-0.4, 0], so 0.2 for the first, times 1 / sqrt(1 * 63): codes
// within -64..63 keep to it.
// One Nesterov step of 1.9 * 0.1: w = [1.295, 0.905]; s = [0.5 - 0.19 * 0.2 * 0.125988, 0.5] = [0.495212, 0.5], both
// rounded to fp16 when written: [0.495117, 0.5]. Codes: 1.295 / 0.495117 = 2.62 -> 3; 0.905 / 0.5 = 1.81 -> 2.
TEST(FakeQuant, OneStepMovesCodesAndScalesAsWorkedByHand) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph coded = coded_linear({2, 2}, {0.5f, 0.5f}, 1);
  graph::Graph real = coded.clone();
  const graph::ValueId w = *real.find_value("w");
  real.value(w).quantized.reset();
  real.value(w).constant = floats({2, 1}, {1.2f, 1.0f});
  OneSample feed;
  train::FitTask task{&coded, &real, nullptr, &feed, {}};
  task.options.learning_rate = 0.1;
  task.options.schedule = train::Schedule::constant;
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  const QuantTensor& moved = *result->graph.value(w).quantized;
  EXPECT_EQ(unpack_codes(moved), (std::vector<std::int8_t>{3, 2}));
  EXPECT_NEAR(moved.scales[0], 0.495117f, 1e-6f);
  EXPECT_EQ(moved.scales[1], 0.5f);
  EXPECT_EQ(moved.method, "qat");
}

// Input x noted with scale 0.1 and zero point 0, weights 1 and 0.5. x = 1.04: place 10.4, code 10, value 1; logits 1
// and 0.5, their gradient -1 / (1 + e^0.5) = -0.377541 and 0.377541, so the value's is -0.377541 + 0.188770 =
// -0.188770. Inside the range d value / d scale = 10 - 10.4 = -0.4, times 1 / sqrt(255) = 0.062622: 0.0047285. One
// Nesterov step of 1.9 * 0.1 ends at 0.0991016. By clipping alone the scale stays. x = 30: place 300, code 255: d value
// / d scale = 255 either way; logits 25.5 and 12.75 have gradients of -2.9e-6 and 2.9e-6: next to nothing moves, but
// upwards.
TEST(FakeQuant, RangesMoveAsWorkedByHand) {
  CTK_NEED_TRAINER(trainer);
  graph::Graph coded = coded_linear({2, 1}, {0.5f, 0.5f}, 1);
  const graph::ValueId x = coded.inputs()[0];
  coded.value(x).activation_quant = ActivationQuant{0.1f, 0};
  const auto scale_after = [&](train::Ranges ranges, float value, double rate) {
    graph::Graph real = coded.clone();
    const graph::ValueId w = *real.find_value("w");
    real.value(w).quantized.reset();
    real.value(w).constant = floats({2, 1}, {1, 0.5f});
    OneSample feed(value);
    train::FitTask task{&coded, &real, nullptr, &feed, {}};
    task.options.learning_rate = rate;
    task.options.schedule = train::Schedule::constant;
    task.options.ranges = ranges;
    const auto result = trainer->fit(task);
    EXPECT_TRUE(result) << result.error().message;
    return result ? result->graph.value(x).activation_quant->scale : 0;
  };
  EXPECT_NEAR(scale_after(train::Ranges::learned, 1.04f, 0.1), 0.0991016f, 1e-6f);
  EXPECT_EQ(scale_after(train::Ranges::clipped, 1.04f, 0.1), 0.1f);
  EXPECT_EQ(scale_after(train::Ranges::fixed, 1.04f, 0.1), 0.1f);
  EXPECT_GT(scale_after(train::Ranges::clipped, 30, 100), 0.1f);
  EXPECT_GT(scale_after(train::Ranges::learned, 30, 100), 0.1f);
}

// A pool hands codes on: its output keeps its input's scale.
TEST(FakeQuant, ValuesThatShareCodesKeepOneRange) {
  CTK_NEED_TRAINER(trainer);
  GraphBuilder b;
  const auto x = b.input("x", {-1, 1, 2, 2});
  const auto pooled = b.node("MaxPool", {x}, "pooled", {{"kernel_shape", Ints{2, 2}}});
  const auto flat = b.node("Flatten", {pooled}, "flat");
  b.output(b.node("Gemm", {flat, b.constant("w", floats({2, 1}, {1, 0.5f}))}, "y", {{"transB", std::int64_t{1}}}));
  for (graph::ValueId id : {x, pooled, flat}) b.graph.value(id).activation_quant = ActivationQuant{0.1f, 0};
  Pictures feed(varied({16, 1, 2, 2}, 4));
  train::FitTask task{&b.graph, &b.graph, nullptr, &feed, {}};
  task.options.learning_rate = 0.1;
  task.options.batch_size = 16;
  task.options.ranges = train::Ranges::learned;
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  const float scale = result->graph.value(x).activation_quant->scale;
  EXPECT_NE(scale, 0.1f);
  EXPECT_EQ(result->graph.value(pooled).activation_quant->scale, scale);
  EXPECT_EQ(result->graph.value(flat).activation_quant->scale, scale);
}

// What the quantizer chose stays until something moves it, whatever the floats would round to.
TEST(FakeQuant, TheStartIsTheQuantizersResult) {
  CTK_NEED_TRAINER(trainer);
  const std::vector<std::int8_t> codes = {3, -5, 127, -127, 0, 9};
  const graph::Graph coded = coded_linear(codes, {0.5f, 0.25f}, 3);
  const auto net = trainer->differentiable(coded, 1);
  ASSERT_TRUE(net) << net.error().message;
  const auto back = (*net)->graph();
  ASSERT_TRUE(back) << back.error().message;
  const QuantTensor& same = *back->value(*back->find_value("w")).quantized;
  EXPECT_EQ(unpack_codes(same), codes);
  EXPECT_EQ(same.scales, (Floats{0.5f, 0.25f}));
}

// x [N, 2, 4, 4] -> Conv 1x1 of 8-bit codes [3, 2] with a scale a row -> mean -> Flatten -> Gemm. Training goes through
// a normalization behind the codes: with a learning rate of nearly nothing, codes stay and scales come back as they
// were up to the statistics of the few batches, which are those the normalization began with.
TEST(FakeQuant, NormsBehindCodesFoldIntoTheirScales) {
  CTK_NEED_TRAINER(trainer);
  const std::vector<std::int8_t> codes = {3, -90, 127, 45, 60, 9};
  const Floats scales = {0.01f, 0.002f, 0.5f};
  GraphBuilder b;
  const auto x = b.input("x", {-1, 2, 4, 4});
  const auto w = b.constant("w", varied({3, 2, 1, 1}));
  const auto conv = b.node("Conv", {x, w, b.constant("bias", floats({3}, {1, -2, 0.5f}))}, "c");
  const auto flat = b.node("Flatten", {b.node("GlobalAveragePool", {conv}, "g")}, "flat");
  b.output(b.node("Gemm", {flat, b.constant("w2", varied({3, 3}, 3))}, "y", {{"transB", std::int64_t{1}}}));
  QuantTensor coded;
  coded.scheme = *parse_scheme("w8a8_c");
  coded.codes = Tensor::of<std::int8_t>({3, 2, 1, 1}, codes);
  coded.scales = scales;
  graph::Graph real = b.graph.clone();
  b.graph.value(w).constant.reset();
  b.graph.value(w).quantized = std::make_shared<const QuantTensor>(coded);
  real.value(w).constant = dequantize(coded);
  Pictures feed(varied({32, 2, 4, 4}, 8));
  train::FitTask task{&b.graph, &real, nullptr, &feed, {}};
  task.options.learning_rate = 1e-12;
  task.options.batch_size = 32;
  const auto result = trainer->fit(task);
  ASSERT_TRUE(result) << result.error().message;
  const QuantTensor& same = *result->graph.value(*result->graph.find_value("w")).quantized;
  EXPECT_EQ(unpack_codes(same), codes);
  // The running variance is the batch's own times n / (n - 1), n = 32 * 16: scales shrink by its root, 0.1 %.
  for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(same.scales[c] / scales[c], std::sqrt(511.0 / 512), 1e-4) << c;
}

TEST(FakeQuant, ACodedNetworkIsNoStudentOfPlainTraining) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph coded = coded_linear({2, 2}, {0.5f, 0.5f}, 1);
  OneSample feed;
  const auto result = trainer->fit({&coded, nullptr, nullptr, &feed, {}});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("expected a float network to train, found codes"), std::string::npos)
      << result.error().message;
}

// A network that tests/end_to_end/test_qat.py has quantized, on its samples: our integer kernels against the same
// network with fake quantization.
TEST(FakeQuant, ACodedBundleGivesWhatItsIntegerKernelsGive) {
  CTK_NEED_TRAINER(trainer);
  const char* bundle = std::getenv("CTK_CODED_BUNDLE");
  const char* samples = std::getenv("CTK_CODED_SAMPLES");
  if (bundle == nullptr || samples == nullptr) GTEST_SKIP() << "CTK_CODED_BUNDLE and CTK_CODED_SAMPLES name no files";
  const auto graph = runtime::load_bundle(bundle);
  ASSERT_TRUE(graph) << graph.error().message;
  const auto mapped = MappedFile::open(samples);
  ASSERT_TRUE(mapped) << mapped.error().message;
  const auto head = data::parse_npy_header(mapped->bytes(), mapped->bytes().size(), samples);
  ASSERT_TRUE(head) << head.error().message;
  const auto array = data::load_npy(*head, {mapped->bytes(), mapped->owner()}, samples);
  ASSERT_TRUE(array) << array.error().message;
  auto net = trainer->differentiable(*graph, 2);
  ASSERT_TRUE(net) << net.error().message;
  const std::vector<Tensor> inputs{array->values};
  const auto fake = (*net)->forward(inputs);
  ASSERT_TRUE(fake) << fake.error().message;
  const Tensor real = run_ours(*graph, inputs)[0];
  const auto a = (*fake)[0].values<float>(), b = real.values<float>();
  const auto classes = static_cast<std::size_t>(real.shape().back());
  std::size_t same = 0;
  for (std::size_t n = 0; n < real.size() / classes; ++n) {
    const auto top = [&](std::span<const float> y) {
      const auto row = y.subspan(n * classes, classes);
      return std::ranges::max_element(row) - row.begin();
    };
    same += top(a) == top(b) ? 1 : 0;
  }
  const double share = static_cast<double>(same) / (static_cast<double>(real.size()) / static_cast<double>(classes));
  RecordProperty("same_arg_max", std::to_string(share));
  EXPECT_GE(share, 0.999) << same << " of " << real.size() / classes;
  EXPECT_LE(difference(real, (*fake)[0]), 0.05);
}

}  // namespace
}  // namespace ctk::test
