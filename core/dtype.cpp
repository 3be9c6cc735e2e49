#include "core/dtype.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace ctk {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int bits;
};

constexpr std::array<DTypeRow, 20> kRows{{
    {DType::f32, "f32", 32},     {DType::f64, "f64", 64}, {DType::f16, "f16", 16}, {DType::bf16, "bf16", 16},
    {DType::i8, "i8", 8},        {DType::u8, "u8", 8},    {DType::i16, "i16", 16}, {DType::u16, "u16", 16},
    {DType::i32, "i32", 32},     {DType::u32, "u32", 32}, {DType::i64, "i64", 64}, {DType::u64, "u64", 64},
    {DType::boolean, "bool", 8}, {DType::i4, "i4", 4},    {DType::u4, "u4", 4},    {DType::string, "string", 0},
    {DType::i2, "i2", 2},        {DType::i3, "i3", 3},    {DType::i5, "i5", 5},    {DType::i6, "i6", 6},
}};

// Elements in eights, which begin and end with a byte, as far as there are whole ones.
template <int kBits>
std::size_t unpack_eights(const std::uint8_t* from, std::size_t count, std::int8_t* out) {
  std::size_t done = 0;
  for (; done + 8 <= count; done += 8, from += kBits) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, kBits);
    for (int i = 0; i < 8; ++i) {  // to the top of a byte, and back down with its sign
      out[done + i] =
          static_cast<std::int8_t>(static_cast<std::int8_t>(word >> kBits * i << (8 - kBits)) >> (8 - kBits));
    }
  }
  return done;
}

// The same for two a byte, in a form of which compilers make vectors.
std::size_t unpack_pairs(const std::uint8_t* from, std::size_t count, std::int8_t* out) {
  for (std::size_t i = 0; i < count / 2; ++i) {
    out[2 * i] = static_cast<std::int8_t>(((from[i] & 15) ^ 8) - 8);
    out[2 * i + 1] = static_cast<std::int8_t>(((from[i] >> 4) ^ 8) - 8);
  }
  return count / 2 * 2;
}

std::size_t unpack_whole_bytes(const std::uint8_t* from, int bits, std::size_t count, std::int8_t* out) {
  switch (bits) {
    case 2:
      return unpack_eights<2>(from, count, out);
    case 3:
      return unpack_eights<3>(from, count, out);
    case 4:
      return unpack_pairs(from, count, out);
    case 5:
      return unpack_eights<5>(from, count, out);
    case 6:
      return unpack_eights<6>(from, count, out);
    default:
      return 0;
  }
}

}  // namespace

int bits_of(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)].bits;
}

DType code_dtype(int bits) {
  for (DType dtype : {DType::i2, DType::i3, DType::i4, DType::i5, DType::i6}) {
    if (bits_of(dtype) == bits) return dtype;
  }
  return DType::i8;
}

int packed_element(const void* data, DType dtype, std::size_t i) {
  const int bits = bits_of(dtype);
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  const std::size_t first = i * static_cast<std::size_t>(bits);
  const int shift = static_cast<int>(first % 8);
  int value = bytes[first / 8] >> shift;
  if (shift + bits > 8) value |= bytes[first / 8 + 1] << (8 - shift);
  value &= (1 << bits) - 1;
  return dtype != DType::u4 && value >= 1 << (bits - 1) ? value - (1 << bits) : value;
}

void unpack_elements(const void* data, DType dtype, std::size_t first, std::size_t count, std::int8_t* out) {
  const auto one = [&] { *out++ = static_cast<std::int8_t>(packed_element(data, dtype, first++)); };
  for (; count > 0 && first % 8 != 0; --count) one();
  const auto bits = static_cast<std::size_t>(bits_of(dtype));
  const auto* from = static_cast<const std::uint8_t*>(data) + first / 8 * bits;
  const std::size_t done = unpack_whole_bytes(from, bits_of(dtype), count, out);
  first += done, out += done, count -= done;
  for (; count > 0; --count) one();
}

void store_packed(void* data, DType dtype, std::size_t i, int value) {
  const int bits = bits_of(dtype);
  auto* bytes = static_cast<std::uint8_t*>(data);
  const std::size_t first = i * static_cast<std::size_t>(bits);
  const int shift = static_cast<int>(first % 8), masked = value & ((1 << bits) - 1);
  bytes[first / 8] = static_cast<std::uint8_t>(bytes[first / 8] | (masked << shift));
  if (shift + bits > 8)
    bytes[first / 8 + 1] = static_cast<std::uint8_t>(bytes[first / 8 + 1] | (masked >> (8 - shift)));
}

std::string_view name_of(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)].name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  std::uint32_t exponent = (bits >> 10) & 0x1fu;
  std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    if (mantissa == 0) return std::bit_cast<float>(sign);
    exponent = 113;  // subnormal half: shift the leading one into place
    while ((mantissa & 0x400u) == 0) {
      mantissa <<= 1;
      --exponent;
    }
    return std::bit_cast<float>(sign | (exponent << 23) | ((mantissa & 0x3ffu) << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds past 65504
  if (magnitude < 0x38800000u) {
    // Below the smallest normal half: adding 0.5 lines the half's last place up with the float's, so the
    // hardware rounds to nearest even for us.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float bfloat_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bfloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace ctk
