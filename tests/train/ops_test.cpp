#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "data/npy.h"
#include "graph/onnx/read.h"
#include "tests/support/small_networks.h"
#include "tests/support/tiny_decoder.h"
#include "tests/train/trainer.h"

namespace ctk::test {
namespace {

// Float sums in another order, over some thousand terms.
constexpr double kTolerance = 1e-5;

TEST(TrainOps, EveryOperatorIsDifferentiableOrSaysWhyNot) {
  CTK_NEED_TRAINER(trainer);
  std::vector<graph::Op> known;
#define CTK_OP(name) known.push_back(graph::Op::name);
#include "graph/ops.def"
#undef CTK_OP
  const auto support = trainer->ops();
  ASSERT_EQ(support.size(), known.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    EXPECT_EQ(support[i].op, known[i]) << name_of(known[i]);
    EXPECT_NE(support[i].is_differentiable, !support[i].reason.empty()) << name_of(known[i]);
  }
}

TEST(TrainOps, AResidualNetworkGivesWhatOurExecutorGives) {
  CTK_NEED_TRAINER(trainer);
  EXPECT_LE(disagreement(*trainer, residual_network(), {varied({2, 3, 9, 7}, 3)}), kTolerance);
}

TEST(TrainOps, ADecoderGivesWhatOurExecutorGives) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph decoder = tiny_decoder();
  const Ints tokens{1, 5, 9, 36, 2, 0, 7, 7, 3, 11};
  EXPECT_LE(disagreement(*trainer, decoder, {Tensor::of<std::int64_t>({1, 10}, tokens)}), kTolerance);
}

TEST(TrainOps, ParametersComeBackBitForBit) {
  CTK_NEED_TRAINER(trainer);
  const graph::Graph net = residual_network();
  auto made = trainer->differentiable(net, 1);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE((*made)->forward(std::vector<Tensor>{varied({2, 3, 9, 7})}));
  const auto back = (*made)->graph();
  ASSERT_TRUE(back) << back.error().message;
  for (std::size_t i = 0; i < net.value_capacity(); ++i) {
    const graph::ValueId id{static_cast<std::uint32_t>(i)};
    if (!net.value(id).constant) continue;
    EXPECT_TRUE(std::ranges::equal(net.value(id).constant->raw(), back->value(id).constant->raw()))
        << net.value(id).name;
  }
}

// d/dp of sum(y * r) by (f(p + h) - f(p - h)) / 2h, with our own executor; ReLU's corners may be crossed by a few.
TEST(TrainOps, GradientsAreThoseOfFiniteDifferences) {
  CTK_NEED_TRAINER(trainer);
  graph::Graph net = residual_network();
  const std::vector<Tensor> inputs{varied({2, 3, 9, 7}, 5)};
  const Tensor weights = varied({2, 5}, 6);
  auto made = trainer->differentiable(net, 1);
  ASSERT_TRUE(made) << made.error().message;
  const auto gradients = (*made)->gradients(inputs, weights);
  ASSERT_TRUE(gradients) << gradients.error().message;
  EXPECT_EQ(gradients->size(), 14u);  // six convolutions and the head, each with a bias
  const auto value = [&] {
    const Tensor y = run_ours(net, inputs)[0];
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += static_cast<double>(y.values<float>()[i]) * weights.values<float>()[i];
    return sum;
  };
  for (const auto& [name, gradient] : *gradients) {
    const graph::ValueId id = *net.find_value(name);
    const Tensor before = *net.value(id).constant;
    for (const std::size_t at : {std::size_t{0}, before.size() / 2, before.size() - 1}) {
      constexpr float kStep = 2e-3f;
      double sides[2];
      for (int side = 0; side < 2; ++side) {
        Tensor moved = before.clone();
        moved.mutable_values<float>()[at] += side == 0 ? -kStep : kStep;
        net.value(id).constant = moved;
        sides[side] = value();
      }
      net.value(id).constant = before;
      const double expected = (sides[1] - sides[0]) / (2 * kStep);
      const double found = gradient.values<float>()[at];
      EXPECT_NEAR(found, expected, 2e-3 + 0.02 * std::abs(expected)) << name << " element " << at;
    }
  }
}

TEST(TrainOps, RefusesCodesAndUnknownOperators) {
  CTK_NEED_TRAINER(trainer);
  GraphBuilder b;
  const auto x = b.input("x", {1, 2});
  b.output(b.node("Strange", {x}, "y", {}, "com.acme"));
  const auto made = trainer->differentiable(b.graph, 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::input);
  EXPECT_NE(made.error().message.find("Strange_y"), std::string::npos) << made.error().message;
}

// Cases that tests/end_to_end/test_training_ops.py writes: one operator each, every form there is.
TEST(TrainOps, OperatorCasesOfAFolderAgree) {
  CTK_NEED_TRAINER(trainer);
  const char* folder = std::getenv("CTK_OP_CASES");
  if (folder == nullptr) GTEST_SKIP() << "CTK_OP_CASES names no folder";
  std::size_t cases = 0, compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path().stem().string());
    ++cases;
    const auto graph = graph::onnx::read_model(entry.path().string());
    ASSERT_TRUE(graph) << graph.error().message;
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < graph->inputs().size(); ++i) {
      const std::string file = entry.path().stem().string() + "." + std::to_string(i) + ".npy";
      const auto mapped = MappedFile::open((entry.path().parent_path() / file).string());
      ASSERT_TRUE(mapped) << mapped.error().message;
      const auto head = data::parse_npy_header(mapped->bytes(), mapped->bytes().size(), file);
      ASSERT_TRUE(head) << head.error().message;
      const auto array = data::load_npy(*head, {mapped->bytes(), mapped->owner()}, file);
      ASSERT_TRUE(array) << array.error().message;
      inputs.push_back(array->values);
    }
    auto net = trainer->differentiable(*graph, 1);
    ASSERT_TRUE(net) << net.error().message;
    const auto outputs = (*net)->forward(inputs);
    if (!outputs && outputs.error().message.find("has no type in LibTorch") != std::string::npos) {
      std::cout << "left out: " << outputs.error().message << "\n";
      continue;
    }
    ++compared;
    EXPECT_LE(disagreement(*trainer, *graph, inputs), 1e-4);
  }
  std::cout << compared << " of " << cases << " cases compared\n";
  EXPECT_GT(compared, 200u);
}

}  // namespace
}  // namespace ctk::test
