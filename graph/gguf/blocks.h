// GGUF's block types: how many bytes hold how many numbers, and the rule from bytes to float32.
//
// A row of a tensor is a whole number of blocks. Multi-byte fields are little-endian, d and m are fp16. Products are
// rounded to float32 one by one, never fused, so the numbers are those of the format's own reference bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace ctk::graph::gguf {

struct BlockType {
  std::uint32_t id;
  std::string_view name;
  std::size_t elements;  // of one block
  std::size_t bytes;     // of one block
  // `blocks` whole blocks -> blocks * elements floats. Null: the size is known, so files that hold it can be walked.
  void (*decode)(const std::byte* source, std::size_t blocks, float* values);
  // Codes, one scale a block and, with has_minimum, one minimum a block (fp16 bits) -> blocks. Null: no plain codes.
  void (*encode)(const std::int8_t* codes, const std::uint16_t* scales, const std::uint16_t* minima, std::size_t blocks,
                 std::byte* target) = nullptr;
  int lowest_code = 0, highest_code = 0;  // real = code * d, or code * d + m
  bool has_minimum = false;
};

std::span<const BlockType> block_types();
const BlockType* find_block_type(std::uint32_t id);       // null: unknown
const BlockType* find_block_type(std::string_view name);  // "Q4_0"; null: unknown
std::string readable_block_types();                       // names with a rule, comma separated, for messages

// All numbers of a tensor of this type, in order. `bytes` is a whole number of blocks. Threads of core/parallel.
// Errors: input (a type without a rule, bytes that are no whole blocks, memory refused).
Result<Tensor> dequantize(const BlockType& type, Shape shape, std::span<const std::byte> bytes);

// Repacks codes as blocks and rounds nothing: dequantize() gives code * scale (+ minimum) exactly as float32 has it.
// codes: blocks * elements; scales, minima: one a block (minima empty without has_minimum).
// Errors: input (a type without plain codes, counts that do not fit, a code outside the type's range).
Result<std::string> encode(const BlockType& type, std::span<const std::int8_t> codes,
                           std::span<const std::uint16_t> scales, std::span<const std::uint16_t> minima);

}  // namespace ctk::graph::gguf
