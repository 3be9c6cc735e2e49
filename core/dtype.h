// Element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ctk {

enum class DType : std::uint8_t {
  f32,
  f64,
  f16,
  bf16,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean,
  i4,
  u4,      // two elements a byte, low nibble first (ONNX and GGUF order)
  string,  // carried by graphs, never computed with
  i2,
  i3,
  i5,
  i6,  // codes of weights only: two's complement, packed without gaps, low bits of a byte first
};

// Bits of one element; 0 for string.
int bits_of(DType dtype);
// The type whose elements are signed and of so many bits: 2 to 6 and 8. Other widths must not be asked for.
DType code_dtype(int bits);
// Element i of packed two's complement or (u4) unsigned numbers narrower than 8 bits.
int packed_element(const void* data, DType dtype, std::size_t i);
// Elements [first, first + count) of packed two's complement, one a byte. Reads no byte that holds none of them.
void unpack_elements(const void* data, DType dtype, std::size_t first, std::size_t count, std::int8_t* out);
// Writes it, where the element's bits are 0 still.
void store_packed(void* data, DType dtype, std::size_t i, int value);
// Short name as in the text form: "f32", "u8", "bool".
std::string_view name_of(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
bool is_float(DType dtype);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::u32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::u64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};

// IEEE half and bfloat16 as stored bits. to_half rounds to nearest, ties to even; overflow gives infinity.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
float bfloat_to_float(std::uint16_t bits);
std::uint16_t float_to_bfloat(float value);

}  // namespace ctk
