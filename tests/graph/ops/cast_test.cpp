#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

Attribute to(std::int64_t type) {
  return type;
}

TEST(Cast, FloatToIntegerTruncatesAndSaturates) {
  const Tensor x = f32({7}, {1.9f, -1.9f, 300, -300, kNaN, kInfinity, -kInfinity});
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(values_of<std::int64_t>(run_one("Cast", {x}, {{"to", to(7)}})), (Ints{1, -1, 300, -300, 0, most, least}));
  EXPECT_EQ(values_of<std::uint8_t>(run_one("Cast", {x}, {{"to", to(2)}})),
            (std::vector<std::uint8_t>{1, 0, 255, 0, 0, 255, 0}));
  EXPECT_EQ(values_of<std::int8_t>(run_one("Cast", {x}, {{"to", to(3)}})),
            (std::vector<std::int8_t>{1, -1, 127, -128, 0, 127, -128}));
  EXPECT_EQ(values_of<std::int32_t>(
                run_one("Cast", {f32({3}, {2147483520.0f, 2147483648.0f, -2147483648.0f})}, {{"to", to(6)}})),
            (std::vector<std::int32_t>{2147483520, 2147483647, std::numeric_limits<std::int32_t>::min()}));
}

TEST(Cast, ConvertsHalfPrecisionBothWays) {
  // 1.0 = 0x3c00, -2.0 = 0xc000, largest half 65504 = 0x7bff; 1 + 2^-11 lies between two halves: ties to even, 1.0.
  const Tensor half = raw(DType::f16, {3}, {0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b});
  expect_f32(run_one("Cast", {half}, {{"to", to(1)}}), {3}, {1, -2, 65504});
  EXPECT_EQ(bytes_of(run_one("Cast", {f32({4}, {1, -2, 65504, 1.00048828125f})}, {{"to", to(10)}})),
            (std::vector<std::uint8_t>{0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b, 0x00, 0x3c}));
}

TEST(Cast, ConvertsDoubleAndBool) {
  const Tensor wide = run_one("Cast", {f32({2}, {0.5f, -3})}, {{"to", to(11)}});
  EXPECT_EQ(values_of<double>(wide), (std::vector<double>{0.5, -3.0}));
  expect_f32(run_one("Cast", {wide}, {{"to", to(1)}}), {2}, {0.5f, -3});
  EXPECT_EQ(bytes_of(run_one("Cast", {f32({4}, {0, -0.0f, 0.1f, kNaN})}, {{"to", to(9)}})),
            (std::vector<std::uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ(values_of<std::int64_t>(run_one("Cast", {booleans({2}, {0, 1})}, {{"to", to(7)}})), (Ints{0, 1}));
}

TEST(Cast, IntegersKeepTheirLowBits) {
  EXPECT_EQ(values_of<std::int8_t>(run_one("Cast", {i64({3}, {1, 200, -1})}, {{"to", to(3)}})),
            (std::vector<std::int8_t>{1, -56, -1}));
  EXPECT_EQ(values_of<std::int64_t>(run_one("Cast", {i32({2}, {-7, 7})}, {{"to", to(7)}})), (Ints{-7, 7}));
}

TEST(Cast, SixtyFourBitIntegersAreExact) {
  const Ints large = {9007199254740993, -9007199254740993};  // 2^53 + 1 is no double
  EXPECT_EQ(values_of<std::int64_t>(run_one("Cast", {i64({2}, large)}, {{"to", to(7)}})), large);
}

TEST(Cast, UnpacksFourBitCodes) {
  // 0x8f: low nibble 15 first, then 8.
  EXPECT_EQ(values_of<std::int64_t>(run_one("Cast", {raw(DType::u4, {2}, {0x8f})}, {{"to", to(7)}})), (Ints{15, 8}));
  EXPECT_EQ(values_of<std::int64_t>(run_one("Cast", {raw(DType::i4, {2}, {0x8f})}, {{"to", to(7)}})), (Ints{-1, -8}));
}

TEST(Cast, FollowsShapeArithmetic) {
  const auto infos = infer_op("Cast", {known(i64({2}, {3, 4}))}, {{"to", to(1)}});
  ASSERT_TRUE(infos.has_value());
  ASSERT_TRUE((*infos)[0].constant.has_value());
  expect_f32(*(*infos)[0].constant, {2}, {3, 4});
}

TEST(Cast, RefusesTypesItDoesNotKnow) {
  const auto x = unknown(DType::f32, {2});
  expect_input_error(infer_op("Cast", {x}), {"to", "found 0"});
  expect_input_error(infer_op("Cast", {x}, {{"to", to(8)}}), {"to", "f32 to string"});
  expect_input_error(infer_op("Cast", {x}, {{"to", to(-5)}}), {"to", "found -5"});
  expect_input_error(infer_op("Cast", {unknown(DType::string, {2})}, {{"to", to(1)}}), {"string to f32"});
}

}  // namespace
}  // namespace ctk::graph::test
