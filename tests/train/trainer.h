// The trainer under test: there where it was built, else a visible skip.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/cpu_executor.h"
#include "tests/support/graph_builder.h"
#include "train/trainer_loader.h"

#ifdef CTK_HAS_TRAINER
#define CTK_NEED_TRAINER(trainer)                  \
  const auto opened_ = train::load_trainer();      \
  ASSERT_TRUE(opened_) << opened_.error().message; \
  train::Trainer* const trainer = *opened_
#else
// Read from memory, so that the compiler does not follow the null into what is skipped.
#define CTK_NEED_TRAINER(trainer)           \
  train::Trainer* volatile none_ = nullptr; \
  train::Trainer* const trainer = none_;    \
  if (trainer == nullptr) GTEST_SKIP() << "built without the trainer (make trainer)"
#endif

namespace ctk::test {

// Largest difference of two float tensors, relative to the largest value or 1.
inline double difference(const Tensor& a, const Tensor& b) {
  double most = 1, miss = 0;
  const auto x = a.values<float>(), y = b.values<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(x[i])));
    miss = std::max(miss, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    if (std::isnan(x[i]) != std::isnan(y[i])) return HUGE_VAL;
  }
  return x.size() == y.size() ? miss / most : HUGE_VAL;
}

inline std::vector<Tensor> run_ours(const graph::Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  auto executor = runtime::CpuExecutor::create(graph, shapes);
  EXPECT_TRUE(executor) << executor.error().message;
  if (!executor) return {};
  auto outputs = (*executor)->run(inputs);
  EXPECT_TRUE(outputs) << outputs.error().message;
  return outputs ? *outputs : std::vector<Tensor>{};
}

// Forward by the trainer against our executor: the largest relative difference over all float outputs.
inline double disagreement(train::Trainer& trainer, const graph::Graph& graph, const std::vector<Tensor>& inputs) {
  auto net = trainer.differentiable(graph, 2);
  EXPECT_TRUE(net) << net.error().message;
  if (!net) return HUGE_VAL;
  const auto theirs = (*net)->forward(inputs);
  EXPECT_TRUE(theirs) << theirs.error().message;
  const std::vector<Tensor> ours = run_ours(graph, inputs);
  if (!theirs || ours.size() != theirs->size()) return HUGE_VAL;
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].shape(), (*theirs)[i].shape());
    EXPECT_EQ(ours[i].dtype(), (*theirs)[i].dtype());
    if (ours[i].dtype() != DType::f32) {
      EXPECT_TRUE(std::ranges::equal(ours[i].raw(), (*theirs)[i].raw()));
    } else {
      worst = std::max(worst, difference(ours[i], (*theirs)[i]));
    }
  }
  return worst;
}

}  // namespace ctk::test
