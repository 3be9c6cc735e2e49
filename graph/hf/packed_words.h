// Unsigned numbers of 2 to 8 bits in 32-bit words. Internal to graph/hf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ctk::graph::hf {

// stream: number i has the bits from i * bits on, lowest first, across the ends of words.
// slots: 32 / bits numbers a word, lowest first; what is left of a word is unused.
// awq: eight numbers of 4 bits a word, in the order 0 2 4 6 1 3 5 7.
enum class WordOrder { stream, slots, awq };

// Words that `count` numbers take.
std::size_t words_of(std::size_t count, int bits, WordOrder order);

// One line of numbers: word w of it is words[w * stride].
struct WordLine {
  const std::int32_t* words;
  std::size_t stride;
};
// Fills `numbers` from number 0 on; the line must have words_of(numbers.size()) words.
void unpack_line(WordLine line, int bits, WordOrder order, std::span<std::uint8_t> numbers);

}  // namespace ctk::graph::hf
