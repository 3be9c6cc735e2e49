// Codes of 2 to 6 bits, zero points and negative scales: FAULTS rows of block packing for our own form.
#include <gtest/gtest.h>

#include "core/quant_tensor.h"

namespace ctk {
namespace {

TEST(NarrowCodes, LieWithoutGapsFromTheLowBitUp) {
  // 3 bits: 1 = 001, -1 = 111, -4 = 100, 3 = 011 -> bits 001 111 100 011 from the low end: 0x3c | (0x07 & 1) << 6 ...
  const Tensor packed = pack_codes({4}, std::vector<std::int8_t>{1, -1, -4, 3}, 3);
  EXPECT_EQ(packed.dtype(), DType::i3);
  EXPECT_EQ(packed.bytes(), 2u);
  const auto* bytes = static_cast<const std::uint8_t*>(packed.data());
  // 1 + 7 * 8 + 4 * 64 + 3 * 512 = 1849 = 0x0739
  EXPECT_EQ(bytes[0], 0x39);
  EXPECT_EQ(bytes[1], 0x07);
}

TEST(NarrowCodes, ComeBackAtEveryWidthAndLength) {
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    for (std::int64_t count : {1, 2, 3, 5, 7, 8, 9, 31}) {
      std::vector<std::int8_t> codes;
      for (std::int64_t i = 0; i < count; ++i)
        codes.push_back(
            static_cast<std::int8_t>(lowest_code(bits) + i * 7 % (highest_code(bits) - lowest_code(bits) + 1)));
      QuantTensor weight;
      weight.scheme = {bits, 16, Granularity::per_channel, 0};
      weight.codes = pack_codes({count}, codes, bits);
      EXPECT_EQ(weight.codes.bytes(), static_cast<std::size_t>((count * bits + 7) / 8)) << bits << " x " << count;
      EXPECT_EQ(unpack_codes(weight), codes) << bits << " x " << count;
    }
  }
}

TEST(NarrowCodes, ComeOutFromAnyElementToAnyOther) {
  for (int bits : {2, 3, 4, 5, 6}) {
    const int width = highest_code(bits) - lowest_code(bits) + 1;
    std::vector<std::int8_t> codes;
    for (int i = 0; i < 45; ++i) codes.push_back(static_cast<std::int8_t>(lowest_code(bits) + i * 7 % width));
    const Tensor packed = pack_codes({45}, codes, bits);
    for (std::size_t first = 0; first < codes.size(); ++first) {
      for (std::size_t count = 0; first + count <= codes.size(); ++count) {
        std::vector<std::int8_t> out(count + 1, 99);
        unpack_elements(packed.data(), packed.dtype(), first, count, out.data());
        std::vector<std::int8_t> expected(codes.begin() + static_cast<std::ptrdiff_t>(first),
                                          codes.begin() + static_cast<std::ptrdiff_t>(first + count));
        expected.push_back(99);
        ASSERT_EQ(out, expected) << bits << " bits, " << first << ", " << count;
      }
    }
  }
}

TEST(AffineWeights, TakeTheirZeroPointOffFirst) {
  QuantTensor weight;
  weight.scheme = parse_scheme("w5a16_g2_affine").value();
  weight.codes = pack_codes({2, 3}, std::vector<std::int8_t>{-16, 15, 0, 1, 2, 3}, 5);
  weight.scales = {0.5f, 2.0f, -1.0f, 4.0f};  // [2 channels, 2 groups]: columns 0-1 and 2
  weight.zeros = {-16, 1, 2, 3};
  const Tensor real = dequantize(weight);
  const std::vector<float> expected{0.0f, 15.5f, -2.0f, 1.0f, 0.0f, 0.0f};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(real.values<float>()[i], expected[i]) << i;
  EXPECT_EQ(stored_bytes(weight), 4u + 3u + 8u);  // 30 bits of codes, 20 of zeros, four fp16 scales
}

}  // namespace
}  // namespace ctk
