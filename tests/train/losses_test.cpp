#include <cmath>

#include "tests/train/trainer.h"

namespace ctk::test {
namespace {

using train::LossOptions;

class Losses : public testing::Test {
 protected:
  static double of(train::Trainer& trainer, const Tensor& logits, const Tensor& teacher, const Ints& labels,
                   const LossOptions& options) {
    const auto loss = trainer.loss(logits, teacher, labels, options);
    EXPECT_TRUE(loss) << loss.error().message;
    return loss ? loss->first : NAN;
  }
};

// softmax([2,0]/4) = [0.622459, 0.377541], softmax([0,2]/4) is its mirror: KL = (0.622459 - 0.377541) * 0.5 = 0.122459;
// times 16 = 1.959349. Three equal rows have the same mean. [1,2,3] against [3,2,1] at T = 2: 4 * 0.320157 = 1.280627.
TEST_F(Losses, SoftLossIsTSquaredTimesTheMeanKlOverRows) {
  CTK_NEED_TRAINER(trainer);
  const LossOptions at4{4, 1, 0}, at2{2, 1, 0}, at1{1, 1, 0};
  EXPECT_NEAR(of(*trainer, floats({1, 2}, {2, 0}), floats({1, 2}, {0, 2}), {}, at4), 1.959349, 2e-6);
  EXPECT_NEAR(of(*trainer, floats({3, 2}, {2, 0, 2, 0, 2, 0}), floats({3, 2}, {0, 2, 0, 2, 0, 2}), {}, at4), 1.959349,
              2e-6);
  EXPECT_NEAR(of(*trainer, floats({1, 3}, {1, 2, 3}), floats({1, 3}, {3, 2, 1}), {}, at2), 1.280627, 2e-6);
  EXPECT_NEAR(of(*trainer, floats({1, 2}, {2, 0}), floats({1, 2}, {0, 2}), {}, at1), 1.523188, 2e-6);
}

// Cross entropy of [2,0] to class 0: ln(1 + e^-2) = 0.126928; to class 1: 2.126928. Smoothed by 0.1 over two classes:
// 0.95 * 0.126928 + 0.05 * 2.126928 = 0.226928.
TEST_F(Losses, HardLossIsTheMeanCrossEntropy) {
  CTK_NEED_TRAINER(trainer);
  const Tensor z = floats({2, 2}, {2, 0, 2, 0});
  EXPECT_NEAR(of(*trainer, z, {}, {0, 1}, {4, 0.9, 0}), (0.126928 + 2.126928) / 2, 2e-6);
  EXPECT_NEAR(of(*trainer, floats({1, 2}, {2, 0}), {}, {0}, {4, 0.9, 0.1}), 0.226928, 2e-6);
}

// 0.9 * 1.959349 + 0.1 * 0.126928 = 1.776107
TEST_F(Losses, BothPartsAreWeighedByAlpha) {
  CTK_NEED_TRAINER(trainer);
  const Tensor z = floats({1, 2}, {2, 0}), t = floats({1, 2}, {0, 2});
  EXPECT_NEAR(of(*trainer, z, t, {0}, {4, 0.9, 0}), 1.776107, 2e-6);
}

TEST_F(Losses, RowsWithoutALabelCountForNothing) {
  CTK_NEED_TRAINER(trainer);
  const Tensor z = floats({3, 2}, {2, 0, 9, -9, 2, 0}), t = floats({3, 2}, {0, 2, -9, 9, 0, 2});
  EXPECT_NEAR(of(*trainer, z, t, {0, -1, 0}, {4, 0.9, 0}), 1.776107, 2e-6);
  const auto loss = trainer->loss(z, t, Ints{0, -1, 0}, {4, 0.9, 0});
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->second.values<float>()[2], 0.0f);
  EXPECT_EQ(loss->second.values<float>()[3], 0.0f);
}

// d/dz of T^2 KL at T: T (softmax(z / T) - softmax(t / T)) a row, divided by the rows: 4 * 0.244919 = 0.979674.
TEST_F(Losses, TheSoftGradientGrowsWithT) {
  CTK_NEED_TRAINER(trainer);
  const auto loss = trainer->loss(floats({1, 2}, {2, 0}), floats({1, 2}, {0, 2}), {}, {4, 0.9, 0});
  ASSERT_TRUE(loss);
  EXPECT_NEAR(loss->second.values<float>()[0], 0.979674, 2e-6);
  EXPECT_NEAR(loss->second.values<float>()[1], -0.979674, 2e-6);
}

TEST_F(Losses, WhatDoesNotFitIsSaidBeforeTraining) {
  CTK_NEED_TRAINER(trainer);
  const auto says = [&](const Tensor& z, const Tensor& t, const Ints& y, const LossOptions& options) {
    const auto loss = trainer->loss(z, t, y, options);
    return loss ? std::string("no error") : loss.error().message;
  };
  const auto wide = [](std::int64_t classes) { return varied({2, classes}); };
  EXPECT_EQ(
      says(wide(64), wide(72), {}, {}),
      "teacher: expected the student's 64 classes, found 72. Give a teacher of the same classes in the same order");
  EXPECT_NE(says(wide(3), {}, {}, {}).find("expected labels or a teacher"), std::string::npos);
  EXPECT_NE(says(wide(3), {}, {0, 3}, {}).find("labels: expected classes below 3"), std::string::npos);
  EXPECT_NE(says(wide(3), {}, {0}, {}).find("labels: expected one for each of the student's 2 rows"),
            std::string::npos);
  EXPECT_NE(says(wide(3), {}, {0, 1}, {0, 0.9, 0}).find("temperature: expected a number above 0"), std::string::npos);
}

}  // namespace
}  // namespace ctk::test
