#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

Floats pad(const Tensor& data, const Ints& pads, const std::string& mode, std::vector<Tensor> more = {}) {
  std::vector<Tensor> inputs = {data, ints(pads)};
  inputs.insert(inputs.end(), more.begin(), more.end());
  const auto result = run_op("Pad", inputs, {{"mode", mode}});
  EXPECT_TRUE(result) << result.error().message;
  return result ? values_of((*result)[0]) : Floats{};
}

TEST(Pad, FillsWithZeroOrTheGivenValue) {
  EXPECT_EQ(pad(counting({2}), {1, 2}, "constant"), (Floats{0, 0, 1, 0, 0}));
  EXPECT_EQ(pad(counting({2}), {1, 0}, "constant", {Tensor::scalar(9.0f)}), (Floats{9, 0, 1}));
  // [[0,1],[2,3]] with one row in front and one column behind
  EXPECT_EQ(pad(counting({2, 2}), {1, 0, 0, 1}, "constant", {Tensor::scalar(7.0f)}),
            (Floats{7, 7, 7, 0, 1, 7, 2, 3, 7}));
}

TEST(Pad, ReflectsWithoutRepeatingTheEdge) {
  EXPECT_EQ(pad(counting({4}), {2, 3}, "reflect"), (Floats{2, 1, 0, 1, 2, 3, 2, 1, 0}));
}

TEST(Pad, RepeatsTheEdge) {
  EXPECT_EQ(pad(counting({3}), {2, 1}, "edge"), (Floats{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(pad(counting({2, 2}), {1, 1, 0, 0}, "edge"), (Floats{0, 0, 1, 0, 0, 1, 2, 2, 3}));
}

TEST(Pad, WrapsAroundMoreThanOnce) {
  EXPECT_EQ(pad(counting({3}), {4, 2}, "wrap"), (Floats{2, 0, 1, 2, 0, 1, 2, 0, 1}));
}

TEST(Pad, CropsWithNegativePads) {
  EXPECT_EQ(pad(counting({5}), {-1, -2}, "constant"), (Floats{1, 2}));
  EXPECT_EQ(pad(counting({4}), {-1, 1}, "constant"), (Floats{1, 2, 3, 0}));
  // the crop comes first: of 1 2 3, the reflection behind 3 is 2
  EXPECT_EQ(pad(counting({4}), {-1, 1}, "reflect"), (Floats{1, 2, 3, 2}));
}

TEST(Pad, TouchesOnlyTheNamedAxes) {
  EXPECT_EQ(pad(counting({2, 2}), {1, 0}, "constant", {Tensor{}, ints({-1})}), (Floats{0, 0, 1, 0, 2, 3}));
}

TEST(Pad, MovesBytesToo) {
  const std::uint8_t codes[] = {5, 6};
  const std::uint8_t zero[] = {128};
  const auto result =
      run_op("Pad", {Tensor::of<std::uint8_t>({2}, codes), ints({1, 1}), Tensor::of<std::uint8_t>({1}, zero)});
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of(to_f32((*result)[0]).value()), (Floats{128, 5, 6, 128}));
}

TEST(Pad, RefusesHostilePads) {
  EXPECT_FALSE(infer_op("Pad", {4}, {ints({INT64_MAX, INT64_MAX})}));
  EXPECT_FALSE(infer_op("Pad", {4}, {ints({INT64_MIN, 0})}));
  EXPECT_FALSE(infer_op("Pad", {4}, {ints({-3, -2})}));  // crops 5 of 4
  EXPECT_FALSE(infer_op("Pad", {4}, {ints({1})}));       // one entry
  EXPECT_FALSE(infer_op("Pad", {4}, {ints({4, 0})}, {{"mode", std::string("reflect")}}));
  EXPECT_FALSE(infer_op("Pad", {0}, {ints({1, 0})}, {{"mode", std::string("edge")}}));
  EXPECT_FALSE(infer_op("Pad", {4}, {ints({1, 1})}, {{"mode", std::string("mirror")}}));
  EXPECT_FALSE(infer_op("Pad", {4, 4}, {ints({1, 1, 1, 1}), Tensor{}, ints({0, 0})}));        // axis twice
  EXPECT_FALSE(infer_op("Pad", {1 << 20, 1 << 20}, {ints({1 << 20, 1 << 20, 1 << 30, 0})}));  // past 2^48
}

}  // namespace
}  // namespace ctk::test
