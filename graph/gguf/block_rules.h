// The rules of the block types with 256 elements, and of those with a table of values; blocks.cpp holds the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"

namespace ctk::graph::gguf {

inline std::uint8_t byte_at(const std::byte* source, std::size_t at) {
  return static_cast<std::uint8_t>(source[at]);
}
inline std::uint16_t u16_at(const std::byte* source, std::size_t at) {
  std::uint16_t value = 0;
  std::memcpy(&value, source + at, sizeof value);
  return value;
}
inline float half_at(const std::byte* source, std::size_t at) {
  return half_to_float(u16_at(source, at));
}

void decode_q2_k(const std::byte* source, std::size_t blocks, float* values);
void decode_q3_k(const std::byte* source, std::size_t blocks, float* values);
void decode_q4_k(const std::byte* source, std::size_t blocks, float* values);
void decode_q5_k(const std::byte* source, std::size_t blocks, float* values);
void decode_q6_k(const std::byte* source, std::size_t blocks, float* values);
void decode_iq4_nl(const std::byte* source, std::size_t blocks, float* values);
void decode_iq4_xs(const std::byte* source, std::size_t blocks, float* values);

}  // namespace ctk::graph::gguf
