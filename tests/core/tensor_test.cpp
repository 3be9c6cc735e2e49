#include "core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace ctk {
namespace {

Tensor floats(std::vector<float> values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
}

TEST(Tensor, StartsAsAlignedZeros) {
  const Tensor tensor = Tensor::zeros(DType::f32, {3, 5}).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0u);
  for (float value : tensor.values<float>()) EXPECT_EQ(value, 0.0f);
}

TEST(Tensor, HoldsNothingAndIsStillDefined) {
  const Tensor empty = Tensor::zeros(DType::f32, {0, 4}).value();
  EXPECT_TRUE(empty.is_defined());
  EXPECT_EQ(empty.size(), 0u);
  EXPECT_EQ(empty.clone().shape(), (Shape{0, 4}));
  EXPECT_FALSE(Tensor().is_defined());
}

TEST(Tensor, RefusesShapesNobodyCanHold) {
  EXPECT_FALSE(Tensor::zeros(DType::f32, {std::int64_t{1} << 40, 1 << 20}).has_value());
  EXPECT_FALSE(Tensor::zeros(DType::f32, {-1}).has_value());
}

TEST(Tensor, CloneIsApartAndReshapeIsShared) {
  Tensor a = floats({1, 2, 3, 4});
  const Tensor shared = a.reshaped({2, 2}), copy = a.clone();
  a.mutable_values<float>()[0] = 9.0f;
  EXPECT_EQ(shared.values<float>()[0], 9.0f);
  EXPECT_EQ(copy.values<float>()[0], 1.0f);
}

TEST(Cast, DropsTheFractionTowardZero) {
  const Tensor whole = cast(floats({1.9f, -1.9f, 0.5f, -0.5f, 2.0f}), DType::i32).value();
  EXPECT_EQ(std::vector<std::int32_t>(whole.values<std::int32_t>().begin(), whole.values<std::int32_t>().end()),
            (std::vector<std::int32_t>{1, -1, 0, 0, 2}));
}

TEST(Cast, IsDefinedForEveryFloat) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor odd = floats({std::nanf(""), infinity, -infinity, 1e30f, 0x1p63f});
  const auto wide = to_i64(odd).value();
  EXPECT_EQ(wide, (std::vector<std::int64_t>{0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MAX}));
  EXPECT_TRUE(cast(odd, DType::u8).has_value());
}

TEST(Cast, KeepsLargeIntegersExact) {
  const std::int64_t large = (std::int64_t{1} << 60) + 1;  // a double would lose the last bit
  EXPECT_EQ(to_i64(Tensor::scalar<std::int64_t>(large)).value()[0], large);
  EXPECT_EQ(cast(Tensor::scalar<std::int64_t>(large), DType::u64).value().values<std::uint64_t>()[0],
            static_cast<std::uint64_t>(large));
}

TEST(Cast, ReadsFourBitsLowNibbleFirst) {
  // Bytes 0xf1, 0x08: signed 1, -1, -8; unsigned 1, 15, 8.
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(std::vector<std::uint8_t>{0xf1, 0x08});
  const Tensor i4 = Tensor::borrowed(DType::i4, {3}, bytes->data(), bytes);
  const Tensor u4 = Tensor::borrowed(DType::u4, {3}, bytes->data(), bytes);
  EXPECT_EQ(to_i64(i4).value(), (std::vector<std::int64_t>{1, -1, -8}));
  EXPECT_EQ(to_i64(u4).value(), (std::vector<std::int64_t>{1, 15, 8}));
  EXPECT_EQ(i4.bytes(), 2u);
}

TEST(Cast, GoesThroughHalvesAndBooleans) {
  const Tensor half = cast(floats({0.5f, 65536.0f}), DType::f16).value();
  EXPECT_EQ(static_cast<const std::uint16_t*>(half.data())[0], 0x3800);
  EXPECT_EQ(static_cast<const std::uint16_t*>(half.data())[1], 0x7c00);
  EXPECT_EQ(to_f32(half).value().values<float>()[0], 0.5f);
  const Tensor flags = cast(floats({0.0f, -2.0f}), DType::boolean).value();
  EXPECT_EQ(to_i64(flags).value(), (std::vector<std::int64_t>{0, 1}));
}

TEST(Cast, RefusesStringsAndFourBitTargets) {
  EXPECT_FALSE(cast(floats({1}), DType::i4).has_value());
  EXPECT_FALSE(cast(Tensor::zeros(DType::string, {1}).value(), DType::f32).has_value());
  EXPECT_FALSE(to_i64(Tensor::zeros(DType::string, {1}).value()).has_value());
}

}  // namespace
}  // namespace ctk
