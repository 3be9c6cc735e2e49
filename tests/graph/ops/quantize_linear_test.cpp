#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(QuantizeLinear, RoundsTiesToEvenAndSaturates) {
  // scale 2, zero point 128: 1/2 -> 0, 3/2 -> 2, 5/2 -> 2, -1/2 -> 0, -3/2 -> -2
  EXPECT_EQ(values_of<std::uint8_t>(
                run_one("QuantizeLinear", {f32({8}, {1, 3, 5, -1, -3, 0, 1000, -1000}), f32({}, {2}), u8({}, {128})})),
            (std::vector<std::uint8_t>{128, 130, 130, 128, 126, 128, 255, 0}));
}

TEST(QuantizeLinear, TypeComesFromTheZeroPointTheAttributeOrIsU8) {
  const Tensor x = f32({3}, {-200, 3, 200}), one = f32({}, {1});
  EXPECT_EQ(values_of<std::int8_t>(run_one("QuantizeLinear", {x, one, i8({}, {0})})),
            (std::vector<std::int8_t>{-128, 3, 127}));
  EXPECT_EQ(run_one("QuantizeLinear", {x, one}, {{"output_dtype", std::int64_t{3}}}).dtype(), DType::i8);
  EXPECT_EQ(values_of<std::uint8_t>(run_one("QuantizeLinear", {x, one})), (std::vector<std::uint8_t>{0, 3, 200}));
}

TEST(QuantizeLinear, ScalesRunAlongTheAxis) {
  const Tensor x = counting({2, 2}), scales = f32({2}, {1, 0.5f}), zeros = i8({2}, {0, 10});
  EXPECT_EQ(values_of<std::int8_t>(run_one("QuantizeLinear", {x, scales, zeros}, {{"axis", std::int64_t{0}}})),
            (std::vector<std::int8_t>{1, 2, 16, 18}));
  EXPECT_EQ(values_of<std::int8_t>(run_one("QuantizeLinear", {x, scales, zeros}, {{"axis", std::int64_t{-1}}})),
            (std::vector<std::int8_t>{1, 14, 3, 18}));
}

TEST(QuantizeLinear, PacksFourBitCodesLowNibbleFirst) {
  // -8 -> 8, 7 -> 7, -1 -> 15: bytes 0x78 and 0x0f, the odd tail's high nibble 0.
  const Tensor zero = raw(DType::i4, {}, {0});
  EXPECT_EQ(bytes_of(run_one("QuantizeLinear", {f32({3}, {-9, 8, -1}), f32({}, {1}), zero})),
            (std::vector<std::uint8_t>{0x78, 0x0f}));
  EXPECT_EQ(
      bytes_of(run_one("QuantizeLinear", {f32({2}, {3, 99}), f32({}, {1})}, {{"output_dtype", std::int64_t{21}}})),
      (std::vector<std::uint8_t>{0xf3}));
}

TEST(QuantizeLinear, BlocksShareAScale) {
  // One row of five in blocks of two: scales 1, 2, 4.
  EXPECT_EQ(values_of<std::uint8_t>(run_one("QuantizeLinear", {filled({1, 5}, 8.0f), f32({1, 3}, {1, 2, 4})},
                                            {{"block_size", std::int64_t{2}}})),
            (std::vector<std::uint8_t>{8, 8, 4, 4, 2}));
}

TEST(QuantizeLinear, NaNAndZeroScaleDoNotTrap) {
  EXPECT_EQ(values_of<std::uint8_t>(run_one("QuantizeLinear", {f32({2}, {kNaN, 1}), f32({}, {0}), u8({}, {7})})),
            (std::vector<std::uint8_t>{7, 255}));
}

TEST(QuantizeLinear, RefusesScalesThatDoNotFit) {
  const auto x = unknown(DType::f32, {2, 3});
  expect_input_error(infer_op("QuantizeLinear", {x, unknown(DType::f32, {2})}), {"scale", "[3]", "found shape [2]"});
  expect_input_error(infer_op("QuantizeLinear", {x, unknown(DType::f32, {3})}, {{"axis", std::int64_t{5}}}), {"axis"});
  expect_input_error(infer_op("QuantizeLinear", {x, unknown(DType::f32, {3}), unknown(DType::u8, {})}),
                     {"zero_point", "expected shape [3], found []"});
  expect_input_error(infer_op("QuantizeLinear", {x, unknown(DType::f32, {2, 3})}, {{"block_size", std::int64_t{2}}}),
                     {"block_size 2", "found shape [2,3]"});
  expect_input_error(infer_op("QuantizeLinear", {x, unknown(DType::f32, {})}, {{"block_size", std::int64_t{-1}}}),
                     {"block_size", "found -1"});
  expect_input_error(infer_op("QuantizeLinear", {x, unknown(DType::f32, {}), unknown(DType::f32, {})}), {"zero_point"});
}

}  // namespace
}  // namespace ctk::graph::test
