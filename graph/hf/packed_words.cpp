#include "graph/hf/packed_words.h"

namespace ctk::graph::hf {
namespace {

constexpr int kWordBits = 32;
constexpr int kAwqPlace[8] = {0, 4, 1, 5, 2, 6, 3, 7};  // of number i among the eight of its word

std::uint32_t word(WordLine line, std::size_t at) {
  return static_cast<std::uint32_t>(line.words[at * line.stride]);
}

}  // namespace

std::size_t words_of(std::size_t count, int bits, WordOrder order) {
  const auto width = static_cast<std::size_t>(bits);
  if (order == WordOrder::stream) return (count * width + kWordBits - 1) / kWordBits;
  const std::size_t per_word = kWordBits / width;
  return (count + per_word - 1) / per_word;
}

void unpack_line(WordLine line, int bits, WordOrder order, std::span<std::uint8_t> numbers) {
  const auto width = static_cast<std::size_t>(bits);
  const std::uint32_t mask = (1u << bits) - 1;
  const std::size_t per_word = kWordBits / width;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::size_t at = i / per_word, shift = i % per_word * width;
    if (order == WordOrder::stream) {
      at = i * width / kWordBits;
      shift = i * width % kWordBits;
    } else if (order == WordOrder::awq) {
      shift = static_cast<std::size_t>(kAwqPlace[i % 8]) * width;
    }
    std::uint32_t number = word(line, at) >> shift;
    if (shift + width > kWordBits) number |= word(line, at + 1) << (kWordBits - shift);
    numbers[i] = static_cast<std::uint8_t>(number & mask);
  }
}

}  // namespace ctk::graph::hf
