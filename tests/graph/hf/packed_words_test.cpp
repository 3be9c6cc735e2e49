#include "graph/hf/packed_words.h"

#include <gtest/gtest.h>

#include <vector>

namespace ctk::graph::hf::test {
namespace {

using Numbers = std::vector<std::uint8_t>;

Numbers unpack(const std::vector<std::uint32_t>& words, std::size_t count, int bits, WordOrder order,
               std::size_t stride = 1) {
  EXPECT_LE((words_of(count, bits, order) - 1) * stride, words.size() - 1);
  std::vector<std::int32_t> stored(words.begin(), words.end());
  Numbers numbers(count);
  unpack_line({stored.data(), stride}, bits, order, numbers);
  return numbers;
}

TEST(PackedWords, LowestBitsComeFirst) {
  EXPECT_EQ(unpack({0x76543210u, 0xfedcba98u}, 10, 4, WordOrder::stream), (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(unpack({0x76543210u, 0xfedcba98u}, 10, 4, WordOrder::slots), (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(unpack({0xff807f00u}, 4, 8, WordOrder::stream), (Numbers{0, 127, 128, 255}));
  EXPECT_EQ(unpack({0xe4u}, 5, 2, WordOrder::stream), (Numbers{0, 1, 2, 3, 0}));
}

TEST(PackedWords, ThreeBitsGoAcrossTheEndsOfWords) {
  // Number 10 has bits 30, 31 and 32, number 21 bits 63, 64 and 65: 5 = 101b and 6 = 110b.
  const std::vector<std::uint32_t> words = {1u << 30, 1u | 0u << 31, 3u};
  const Numbers numbers = unpack(words, 32, 3, WordOrder::stream);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(numbers[i], i == 10 ? 5 : i == 21 ? 6 : 0) << i;
}

TEST(PackedWords, SlotsLeaveTheRestOfAWord) {
  // Ten numbers of 3 bits a word; the two bits left over are not read.
  EXPECT_EQ(unpack({0xc0000007u | 5u << 27, 2u}, 11, 3, WordOrder::slots), (Numbers{7, 0, 0, 0, 0, 0, 0, 0, 0, 5, 2}));
}

TEST(PackedWords, AwqHasEvenColumnsBeforeOdd) {
  // Nibble k of a word is column 0 2 4 6 1 3 5 7 of eight: columns 0..7 hold 0..7.
  EXPECT_EQ(unpack({0x75316420u}, 8, 4, WordOrder::awq), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(PackedWords, AStrideWalksDownAColumn) {
  EXPECT_EQ(unpack({0x10u, 0xffffffffu, 0x32u}, 10, 4, WordOrder::stream, 2), (Numbers{0, 1, 0, 0, 0, 0, 0, 0, 2, 3}));
}

TEST(PackedWords, CountsWords) {
  EXPECT_EQ(words_of(64, 3, WordOrder::stream), 6u);
  EXPECT_EQ(words_of(64, 3, WordOrder::slots), 7u);
  EXPECT_EQ(words_of(11, 8, WordOrder::stream), 3u);
  EXPECT_EQ(words_of(16, 4, WordOrder::awq), 2u);
}

}  // namespace
}  // namespace ctk::graph::hf::test
