// Expected numbers come from ONNX Runtime on the same inputs, unless worked out in view.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

// Float coordinates carry a few roundings of numbers below 16.
constexpr float kTolerance = 3e-5f;

Attrs resize_mode(const std::string& mode, const std::string& coordinate = "half_pixel",
                  const std::string& nearest = "round_prefer_floor") {
  return {{"mode", mode}, {"coordinate_transformation_mode", coordinate}, {"nearest_mode", nearest}};
}

Result<Tensor> by_scales(const Tensor& data, const Floats& scales, const Attrs& attributes) {
  CTK_TRY(auto results,
          run_op("Resize", {data, Tensor{}, floats({static_cast<std::int64_t>(scales.size())}, scales)}, attributes));
  return results[0];
}

Result<Tensor> by_sizes(const Tensor& data, const Ints& sizes, const Attrs& attributes) {
  CTK_TRY(auto results, run_op("Resize", {data, Tensor{}, Tensor{}, ints(sizes)}, attributes));
  return results[0];
}

void expect_near(const Result<Tensor>& found, const Floats& expected) {
  ASSERT_TRUE(found) << found.error().message;
  const Floats values = values_of(*found);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], kTolerance) << "element " << i;
}

TEST(ResizeNearest, DoublesByRepeating) {
  const auto result = by_scales(counting({1, 1, 2, 2}), {1, 1, 2, 2}, resize_mode("nearest", "asymmetric", "floor"));
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of(*result), (Floats{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}));
}

TEST(ResizeNearest, PicksTheNeighbourOfEveryModePair) {
  struct Row {
    const char *nearest, *coordinate;
    Floats to_seven, to_three;
  };
  const Row rows[] = {
      {"round_prefer_floor", "half_pixel", {0, 0, 1, 1, 2, 3, 3}, {0, 1, 3}},
      {"round_prefer_floor", "asymmetric", {0, 1, 1, 2, 2, 3, 3}, {0, 1, 3}},
      {"round_prefer_floor", "align_corners", {0, 0, 1, 1, 2, 2, 3}, {0, 1, 3}},
      {"round_prefer_floor", "pytorch_half_pixel", {0, 0, 1, 1, 2, 3, 3}, {0, 1, 3}},
      {"round_prefer_floor", "half_pixel_symmetric", {0, 0, 1, 1, 2, 3, 3}, {0, 1, 3}},
      {"round_prefer_ceil", "half_pixel", {0, 0, 1, 2, 2, 3, 3}, {0, 2, 3}},
      {"round_prefer_ceil", "asymmetric", {0, 1, 1, 2, 2, 3, 3}, {0, 1, 3}},
      {"round_prefer_ceil", "align_corners", {0, 1, 1, 2, 2, 3, 3}, {0, 2, 3}},
      {"floor", "half_pixel", {0, 0, 0, 1, 2, 2, 3}, {0, 1, 2}},
      {"floor", "asymmetric", {0, 0, 1, 1, 2, 2, 3}, {0, 1, 2}},
      {"floor", "align_corners", {0, 0, 1, 1, 2, 2, 3}, {0, 1, 3}},
      {"ceil", "half_pixel", {0, 1, 1, 2, 3, 3, 3}, {1, 2, 3}},
      {"ceil", "asymmetric", {0, 1, 2, 2, 3, 3, 3}, {0, 2, 3}},
      {"ceil", "align_corners", {0, 1, 1, 2, 2, 3, 3}, {0, 2, 3}},
  };
  for (const Row& row : rows) {
    const Attrs attributes = resize_mode("nearest", row.coordinate, row.nearest);
    EXPECT_EQ(values_of(by_sizes(counting({1, 1, 1, 4}), {1, 1, 1, 7}, attributes).value()), row.to_seven)
        << row.nearest << " " << row.coordinate;
    EXPECT_EQ(values_of(by_sizes(counting({1, 1, 1, 4}), {1, 1, 1, 3}, attributes).value()), row.to_three)
        << row.nearest << " " << row.coordinate;
  }
}

TEST(ResizeNearest, MovesCodesToo) {
  const std::uint8_t codes[] = {7, 9};
  const auto result = by_scales(Tensor::of<std::uint8_t>({2}, codes), {2}, resize_mode("nearest"));
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of(to_f32(*result).value()), (Floats{7, 7, 9, 9}));
}

TEST(ResizeLinear, AgreesInEveryCoordinateMode) {
  const Tensor data = counting({1, 1, 4, 4});
  const Floats scales = {1, 1, 0.6f, 1.5f};
  const Floats half = {1.3333333f, 1.8333333f, 2.5f,       3.1666667f, 3.8333333f, 4.3333333f,
                       8.0f,       8.5f,       9.1666667f, 9.8333333f, 10.5f,      11.0f};
  expect_near(by_scales(data, scales, resize_mode("linear", "half_pixel")), half);
  expect_near(by_scales(data, scales, resize_mode("linear", "pytorch_half_pixel")), half);
  expect_near(
      by_scales(data, scales, resize_mode("linear", "asymmetric")),
      {0, 0.6666667f, 1.3333333f, 2, 2.6666667f, 3, 6.6666667f, 7.3333333f, 8, 8.6666667f, 9.3333333f, 9.6666667f});
  expect_near(by_scales(data, scales, resize_mode("linear", "align_corners")),
              {0, 0.6f, 1.2f, 1.8f, 2.4f, 3, 12, 12.6f, 13.2f, 13.8f, 14.4f, 15});
  expect_near(by_scales(data, scales, resize_mode("linear", "half_pixel_symmetric")),
              {2.6666667f, 3.1666667f, 3.8333333f, 4.5f, 5.1666667f, 5.6666667f, 9.3333333f, 9.8333333f, 10.5f,
               11.1666667f, 11.8333333f, 12.3333333f});
}

TEST(ResizeLinear, WorksInThreeDimensions) {
  // corners of a cube 0..7; every midpoint is the mean of its neighbours
  const auto result = by_scales(counting({1, 1, 2, 2, 2}), {1, 1, 1.5f, 1.5f, 1.5f}, resize_mode("linear"));
  expect_near(result, {0, 0.5f, 1,    1, 1.5f, 2,    2, 2.5f, 3,    2, 2.5f, 3,    3, 3.5f,
                       4, 4,    4.5f, 5, 4,    4.5f, 5, 5,    5.5f, 6, 6,    6.5f, 7});
}

TEST(ResizeLinear, TouchesOnlyTheNamedAxes) {
  Attrs attributes = resize_mode("linear");
  attributes.push_back({"axes", Ints{-1}});
  expect_near(by_scales(counting({2, 2}), {2}, attributes), {0, 0.25f, 0.75f, 1, 2, 2.25f, 2.75f, 3});
}

TEST(ResizeCubic, AgreesWithAndWithoutTheOutside) {
  const Tensor data = floats({1, 1, 4, 4}, {1, 4, 2, 8, 5, 7, 3, 9, 6, 0, 2, 4, 8, 1, 5, 3});
  const Floats scales = {1, 1, 0.75f, 1.5f};
  expect_near(
      by_scales(data, scales, resize_mode("cubic")),
      {1.2966988f, 3.2785742f, 4.3635483f, 2.0292051f, 4.9714274f, 8.7571869f, 5.8611135f, 4.8164063f, 3.2405987f,
       2.0953424f, 4.3710938f, 7.0672746f, 8.3375664f, 3.8747833f, 0.7015077f, 4.0126143f, 4.1622543f, 2.9269071f});
  Attrs attributes = resize_mode("cubic");
  attributes.push_back({"exclude_outside", std::int64_t{1}});
  expect_near(
      by_scales(data, scales, attributes),
      {1.2086245f, 3.0840104f, 4.3240623f, 2.0123582f, 5.2375784f, 8.8265085f, 5.8902030f, 4.8910713f, 3.2405972f,
       2.0953422f, 4.5696435f, 7.1309104f, 8.4608917f, 4.2253766f, 0.7254410f, 4.0497856f, 4.0826416f, 2.8965404f});
}

TEST(ResizeCubic, FollowsItsCoefficient) {
  const Tensor data = floats({1, 1, 4, 4}, {1, 4, 2, 8, 5, 7, 3, 9, 6, 0, 2, 4, 8, 1, 5, 3});
  Attrs attributes = resize_mode("cubic");
  attributes.push_back({"cubic_coeff_a", -0.5f});
  expect_near(by_sizes(data, {1, 1, 4, 6}, attributes),
              {0.8263896f, 2.625f,     3.8634243f, 1.9282408f, 4.875f,     8.3472214f, 4.8842593f,  6.25f,
               6.5648141f, 3.1574068f, 5.75f,      9.3472195f, 6.3472204f, 2.875f,     -0.1296293f, 1.5740727f,
               3.125f,     4.1157398f, 8.4050913f, 4.25f,      1.0995378f, 4.5532389f, 4.25f,       2.8842587f});
}

TEST(Resize, LeavesDataAloneAtScaleOne) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    const auto result = by_scales(varied({1, 2, 3, 3}), {1, 1, 1, 1}, resize_mode(mode));
    ASSERT_TRUE(result);
    EXPECT_EQ(values_of(*result), values_of(varied({1, 2, 3, 3}))) << mode;
  }
}

TEST(Resize, TakesAnEmptyListAsAbsent) {
  const auto result = run_op("Resize", {counting({2}), Tensor{}, floats({0}, {}), ints({4})},
                             resize_mode("nearest", "asymmetric", "floor"));
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of((*result)[0]), (Floats{0, 0, 1, 1}));
}

TEST(Resize, RefusesHostileScalesAndSizes) {
  const Attrs attributes = resize_mode("nearest");
  for (float scale : {0.0f, -1.0f, NAN, INFINITY, 1e30f}) EXPECT_FALSE(by_scales(counting({2}), {scale}, attributes));
  EXPECT_FALSE(by_sizes(counting({2}), {-1}, attributes));
  EXPECT_FALSE(by_sizes(counting({2}), {INT64_MAX}, attributes));
  EXPECT_FALSE(by_sizes(counting({0}), {1}, attributes));
  EXPECT_FALSE(by_sizes(counting({2}), {1, 1}, attributes));
  EXPECT_FALSE(run_op("Resize", {counting({2})}, attributes));                                         // neither
  EXPECT_FALSE(run_op("Resize", {counting({2}), Tensor{}, floats({1}, {1}), ints({2})}, attributes));  // both
  EXPECT_FALSE(run_op("Resize", {counting({2}), Tensor{}, floats({1}, {2})}, attributes, 3));          // unknown
}

TEST(Resize, NamesWhatItDoesNotCompute) {
  const auto crop = by_scales(counting({2}), {2}, resize_mode("linear", "tf_crop_and_resize"));
  ASSERT_FALSE(crop);
  EXPECT_NE(crop.error().message.find("tf_crop_and_resize"), std::string::npos);
  Attrs policy = resize_mode("linear");
  policy.push_back({"keep_aspect_ratio_policy", std::string("not_larger")});
  EXPECT_FALSE(by_sizes(counting({2}), {4}, policy));
  Attrs antialias = resize_mode("linear");
  antialias.push_back({"antialias", std::int64_t{1}});
  EXPECT_FALSE(by_sizes(counting({4}), {2}, antialias));
  EXPECT_FALSE(by_scales(counting({2, 2, 2}), {2, 2, 2}, resize_mode("cubic")));
  EXPECT_FALSE(by_scales(ints({1, 2}), {2}, resize_mode("linear")));  // integers between integers
}

}  // namespace
}  // namespace ctk::test
