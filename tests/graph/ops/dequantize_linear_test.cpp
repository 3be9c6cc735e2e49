#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(DequantizeLinear, SubtractsTheZeroPointExactly) {
  expect_f32(run_one("DequantizeLinear", {u8({3}, {0, 128, 255}), f32({}, {0.5f}), u8({}, {128})}), {3},
             {-64, 0, 63.5f});
  expect_f32(run_one("DequantizeLinear", {i8({2}, {-128, 127}), f32({}, {1})}), {2}, {-128, 127});
}

TEST(DequantizeLinear, ReadsBiasCodesPerChannel) {
  expect_f32(run_one("DequantizeLinear", {i32({2}, {1000000, -3}), f32({2}, {0.5f, 2})}, {{"axis", std::int64_t{0}}}),
             {2}, {500000, -6});
}

TEST(DequantizeLinear, ScalesRunAlongTheAxisOfAWeight) {
  expect_f32(run_one("DequantizeLinear", {i8({2, 2}, {1, 2, 3, 4}), f32({2}, {1, 10})}, {{"axis", std::int64_t{0}}}),
             {2, 2}, {1, 2, 30, 40});
  expect_f32(run_one("DequantizeLinear", {i8({2, 2}, {1, 2, 3, 4}), f32({2}, {1, 10})}), {2, 2}, {1, 20, 3, 40});
}

TEST(DequantizeLinear, UnpacksFourBitCodesInBlocks) {
  // Rows (7, -8, 1) and (2, -1, 3), blocks of two along axis 1: 0x87, 0x21, 0x3f.
  const Tensor codes = raw(DType::i4, {2, 3}, {0x87, 0x21, 0x3f});
  expect_f32(run_one("DequantizeLinear", {codes, f32({2, 2}, {1, 10, 100, 1000})},
                     {{"axis", std::int64_t{1}}, {"block_size", std::int64_t{2}}}),
             {2, 3}, {7, -8, 10, 200, -100, 3000});
}

TEST(DequantizeLinear, BlocksAlongTheFirstAxisKeepTheColumns) {
  // Three rows of two, blocks of two rows: scales [2, 2].
  expect_f32(run_one("DequantizeLinear", {i8({3, 2}, {1, 1, 1, 1, 1, 1}), f32({2, 2}, {1, 2, 3, 4})},
                     {{"axis", std::int64_t{0}}, {"block_size", std::int64_t{2}}}),
             {3, 2}, {1, 2, 1, 2, 3, 4});
}

TEST(DequantizeLinear, UnsignedFourBitZeroPointIsPackedToo) {
  // Codes 15, 0 with zero points 8, 8 (0x88): 7, -8.
  expect_f32(run_one("DequantizeLinear", {raw(DType::u4, {2}, {0x0f}), f32({2}, {1, 1}), raw(DType::u4, {2}, {0x88})},
                     {{"axis", std::int64_t{0}}}),
             {2}, {7, -8});
}

TEST(DequantizeLinear, RefusesAForeignZeroPointAndFloats) {
  expect_input_error(
      infer_op("DequantizeLinear", {unknown(DType::u8, {2}), unknown(DType::f32, {}), unknown(DType::i8, {})}),
      {"zero_point", "expected u8, found i8"});
  expect_input_error(infer_op("DequantizeLinear", {unknown(DType::f32, {2}), unknown(DType::f32, {})}),
                     {"x", "found f32"});
  expect_input_error(infer_op("DequantizeLinear", {unknown(DType::u8, {2, 3}), unknown(DType::f32, {2})}),
                     {"scale", "found shape [2]"});
}

}  // namespace
}  // namespace ctk::graph::test
