#include "graph/gguf/blocks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/hash.h"
#include "core/parallel.h"

namespace ctk::graph::gguf {
namespace {

std::vector<float> decoded(std::string_view type, const std::vector<std::uint8_t>& bytes) {
  const BlockType* row = find_block_type(type);
  const auto count = static_cast<std::int64_t>(bytes.size() / row->bytes * row->elements);
  const auto tensor = dequantize(*row, {count}, std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(tensor.has_value()) << (tensor ? "" : tensor.error().message);
  const auto values = tensor->values<float>();
  return {values.begin(), values.end()};
}

// The bytes 0, 0x3c (1.0 in fp16) at both scale places, then b(i) = 37 i + 11: worked by hand for a few elements.
TEST(GgufBlocks, NibblesLieInHalves) {
  std::vector<std::uint8_t> q4_0{0x00, 0x3c};
  for (int i = 0; i < 16; ++i) q4_0.push_back(static_cast<std::uint8_t>(37 * i + 11));
  const std::vector<float> values = decoded("Q4_0", q4_0);
  EXPECT_EQ(values[0], 11 - 8);  // byte 0 is 0x0b
  EXPECT_EQ(values[16], 0 - 8);
  EXPECT_EQ(values[1], 0 - 8);  // byte 1 is 48 = 0x30
  EXPECT_EQ(values[17], 3 - 8);
}

TEST(GgufBlocks, FifthBitAndMinimum) {
  std::vector<std::uint8_t> q5_1{0x00, 0x40, 0x00, 0xbc, 0x01, 0x00, 0x01, 0x80};  // d 2, m -1, bits 0, 16, 31
  q5_1.resize(24, 0x21);                                                           // low nibble 1, high nibble 2
  const std::vector<float> values = decoded("Q5_1", q5_1);
  EXPECT_EQ(values[0], 2 * 17 - 1);
  EXPECT_EQ(values[1], 2 * 1 - 1);
  EXPECT_EQ(values[16], 2 * 18 - 1);
  EXPECT_EQ(values[17], 2 * 2 - 1);
  EXPECT_EQ(values[31], 2 * 18 - 1);
}

// Scales of any sign, tiny and infinite: the numbers are code * scale, so -8 with -2.5 is 20.
TEST(GgufBlocks, ScaleMayBeNegative) {
  std::vector<std::uint8_t> q4_0{0x00, 0xc1};  // -2.5
  q4_0.resize(18, 0xf0);
  EXPECT_EQ(decoded("Q4_0", q4_0)[0], 20.0f);
  EXPECT_EQ(decoded("Q4_0", q4_0)[16], -17.5f);
}

// Every number of a type with plain codes comes back from encode() as it went in.
TEST(GgufBlocks, EncodeRoundTripsEveryCode) {
  for (const BlockType& type : block_types()) {
    if (type.encode == nullptr) continue;
    const int count = type.highest_code - type.lowest_code + 1;
    const std::size_t blocks = 8;
    std::vector<std::int8_t> codes(blocks * type.elements);
    for (std::size_t i = 0; i < codes.size(); ++i)
      codes[i] = static_cast<std::int8_t>(type.lowest_code + static_cast<int>(i * 7 % static_cast<std::size_t>(count)));
    std::vector<std::uint16_t> scales, minima;
    for (std::size_t b = 0; b < blocks; ++b) {
      scales.push_back(float_to_half(b % 2 == 0 ? 0.0123f * static_cast<float>(b + 1) : -1.5f));
      if (type.has_minimum) minima.push_back(float_to_half(-0.37f * static_cast<float>(b)));
    }
    const auto bytes = encode(type, codes, scales, minima);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
    ASSERT_EQ(bytes->size(), blocks * type.bytes);
    const auto back = dequantize(type, {static_cast<std::int64_t>(codes.size())}, std::as_bytes(std::span(*bytes)));
    ASSERT_TRUE(back.has_value());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const float product = static_cast<float>(codes[i]) * half_to_float(scales[i / type.elements]);
      const float expected = type.has_minimum ? product + half_to_float(minima[i / type.elements]) : product;
      ASSERT_EQ(back->values<float>()[i], expected) << type.name << " element " << i;
    }
  }
}

TEST(GgufBlocks, EncodeRefusesWhatATypeCannotHold) {
  std::vector<std::int8_t> codes(32, 0);
  const std::vector<std::uint16_t> scales{0x3c00};
  codes[5] = 8;
  const auto past = encode(*find_block_type("Q4_0"), codes, scales, {});
  ASSERT_FALSE(past.has_value());
  EXPECT_NE(past.error().message.find("codes in -8..7, found 8 at 5"), std::string::npos) << past.error().message;
  codes[5] = -1;
  EXPECT_FALSE(encode(*find_block_type("Q4_1"), codes, scales, scales).has_value());
  EXPECT_FALSE(encode(*find_block_type("Q8_0"), codes, {}, {}).has_value());
  EXPECT_FALSE(encode(*find_block_type("Q8_0"), std::span(codes).first(31), scales, {}).has_value());
  EXPECT_FALSE(encode(*find_block_type("Q4_0"), codes, scales, scales).has_value());
  const auto floats = encode(*find_block_type("Q6_K"), codes, scales, {});
  ASSERT_FALSE(floats.has_value());
  EXPECT_NE(floats.error().message.find("\"Q6_K\""), std::string::npos);
}

TEST(GgufBlocks, RefusesTypesWithoutRuleAndPartialBlocks) {
  const std::vector<std::byte> bytes(256);
  const auto carried = dequantize(*find_block_type("IQ1_S"), {256}, std::span(bytes).first(50));
  ASSERT_FALSE(carried.has_value());
  EXPECT_NE(carried.error().message.find("found \"IQ1_S\""), std::string::npos) << carried.error().message;
  EXPECT_FALSE(dequantize(*find_block_type("Q4_0"), {32}, std::span(bytes).first(17)).has_value());
  EXPECT_FALSE(dequantize(*find_block_type("Q4_0"), {31}, std::span(bytes).first(18)).has_value());
  EXPECT_FALSE(dequantize(*find_block_type("F32"), {-1}, std::span(bytes).first(4)).has_value());
}

TEST(GgufBlocks, ThreadsDoNotChangeBits) {
  const BlockType& type = *find_block_type("Q3_K");
  const std::size_t blocks = 1031;
  std::vector<std::uint8_t> bytes(blocks * type.bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13);
  for (std::size_t b = 0; b < blocks; ++b) bytes[b * type.bytes + 109] = 0x2c;  // finite scales
  set_threads(1);
  const std::vector<float> alone = decoded("Q3_K", bytes);
  set_threads(2);
  EXPECT_EQ(decoded("Q3_K", bytes), alone);
}

TEST(GgufBlocks, IdsAndNamesAreUnique) {
  for (const BlockType& type : block_types()) {
    EXPECT_EQ(find_block_type(type.id), &type);
    EXPECT_EQ(find_block_type(type.name), &type);
  }
  EXPECT_EQ(find_block_type(4u), nullptr);  // Q4_2, long gone
  EXPECT_EQ(find_block_type("Q9_9"), nullptr);
}

}  // namespace
}  // namespace ctk::graph::gguf
