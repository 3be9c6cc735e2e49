// Bytes to numbers for the block types of 256 elements. Source: ggml's specification of its K and IQ4 types; layouts
// are drawn at each rule, in the order of the bytes.
#include "graph/gguf/block_rules.h"

#include <array>

namespace ctk::graph::gguf {
namespace {

constexpr std::size_t kLong = 256;  // elements of a long block

// The levels of IQ4_NL and IQ4_XS: constants of the format.
constexpr std::array<float, 16> kLevels{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Eight 6-bit scales and eight 6-bit minima in twelve bytes: the first four of each in the low six bits of bytes 0..3
// and 4..7, the other four as nibbles of bytes 8..11 below the two bits that were left over above.
struct ScalesAndMinima {
  std::uint8_t scale[8], minimum[8];
};
ScalesAndMinima unpack_scales(const std::byte* packed) {
  ScalesAndMinima out;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint8_t d = byte_at(packed, i), m = byte_at(packed, 4 + i), both = byte_at(packed, 8 + i);
    out.scale[i] = d & 0x3f;
    out.minimum[i] = m & 0x3f;
    out.scale[4 + i] = static_cast<std::uint8_t>((both & 0x0f) | ((d >> 2) & 0x30));
    out.minimum[4 + i] = static_cast<std::uint8_t>((both >> 4) | ((m >> 2) & 0x30));
  }
  return out;
}

}  // namespace

// scales+minima u4x16 of 16 elements each [16] | codes u2 [64] | d | dmin.   real = d*scale*code - dmin*minimum
void decode_q2_k(const std::byte* source, std::size_t blocks, float* values) {
  for (std::size_t b = 0; b < blocks; ++b, source += 84, values += kLong) {
    const float d = half_at(source, 80), dmin = half_at(source, 82);
    for (std::size_t part = 0; part < 16; ++part) {
      const std::uint8_t packed = byte_at(source, part);
      const float scale = d * static_cast<float>(packed & 15), minimum = dmin * static_cast<float>(packed >> 4);
      // Parts 2s and 2s+1 of a half are bits 2s..2s+1 of its 32 bytes.
      const std::size_t half = part / 8, shift = 2 * (part % 8 / 2), from = 16 + 32 * half + 16 * (part % 2);
      for (std::size_t i = 0; i < 16; ++i) {
        const float code = static_cast<float>((byte_at(source, from + i) >> shift) & 3);
        values[16 * part + i] = scale * code - minimum;
      }
    }
  }
}

// high bits u1 [32] | codes u2 [64] | scales i6x16 [12] | d.   real = d*(scale-32)*(code - 4 where the high bit is 0)
void decode_q3_k(const std::byte* source, std::size_t blocks, float* values) {
  for (std::size_t b = 0; b < blocks; ++b, source += 110, values += kLong) {
    const float d = half_at(source, 108);
    for (std::size_t part = 0; part < 16; ++part) {
      const int low = (byte_at(source, 96 + part % 8) >> (4 * (part / 8))) & 15;
      const int high = (byte_at(source, 104 + part % 4) >> (2 * (part / 4))) & 3;
      const float scale = d * static_cast<float>((low | (high << 4)) - 32);
      const std::size_t half = part / 8, shift = 2 * (part % 8 / 2), column = 16 * (part % 2);
      for (std::size_t i = 0; i < 16; ++i) {
        const int code = (byte_at(source, 32 + 32 * half + column + i) >> shift) & 3;
        const int is_high = (byte_at(source, column + i) >> (part / 2)) & 1;
        values[16 * part + i] = scale * static_cast<float>(code - (is_high != 0 ? 0 : 4));
      }
    }
  }
}

// d | dmin | scales, minima [12] | codes u4 [128].   real = d*scale*code - dmin*minimum, eight parts of 32
void decode_q4_k(const std::byte* source, std::size_t blocks, float* values) {
  for (std::size_t b = 0; b < blocks; ++b, source += 144, values += kLong) {
    const float d = half_at(source, 0), dmin = half_at(source, 2);
    const ScalesAndMinima packed = unpack_scales(source + 4);
    for (std::size_t part = 0; part < 8; ++part) {
      const float scale = d * static_cast<float>(packed.scale[part]);
      const float minimum = dmin * static_cast<float>(packed.minimum[part]);
      for (std::size_t i = 0; i < 32; ++i) {
        const int code = (byte_at(source, 16 + 32 * (part / 2) + i) >> (4 * (part % 2))) & 15;
        values[32 * part + i] = scale * static_cast<float>(code) - minimum;
      }
    }
  }
}

// As Q4_K with a fifth bit of every code: d | dmin | scales, minima [12] | high bits u1 [32] | codes u4 [128]
void decode_q5_k(const std::byte* source, std::size_t blocks, float* values) {
  for (std::size_t b = 0; b < blocks; ++b, source += 176, values += kLong) {
    const float d = half_at(source, 0), dmin = half_at(source, 2);
    const ScalesAndMinima packed = unpack_scales(source + 4);
    for (std::size_t part = 0; part < 8; ++part) {
      const float scale = d * static_cast<float>(packed.scale[part]);
      const float minimum = dmin * static_cast<float>(packed.minimum[part]);
      for (std::size_t i = 0; i < 32; ++i) {
        const int low = (byte_at(source, 48 + 32 * (part / 2) + i) >> (4 * (part % 2))) & 15;
        const int high = (byte_at(source, 16 + i) >> part) & 1;
        values[32 * part + i] = scale * static_cast<float>(low | (high << 4)) - minimum;
      }
    }
  }
}

// low nibbles u4 [128] | high bits u2 [64] | scales i8 [16] | d.   real = d*scale*(code - 32), sixteen parts of 16
void decode_q6_k(const std::byte* source, std::size_t blocks, float* values) {
  for (std::size_t b = 0; b < blocks; ++b, source += 210, values += kLong) {
    const float d = half_at(source, 208);
    for (std::size_t part = 0; part < 16; ++part) {
      const float scale = d * static_cast<float>(static_cast<std::int8_t>(byte_at(source, 192 + part)));
      // Runs of 32 elements: of the four in a half, two share 64 low bytes by nibble, all share 32 high bytes.
      const std::size_t run = part / 2, half = run / 4, column = 16 * (part % 2);
      const std::size_t low_at = 64 * half + 32 * (run % 2) + column, low_shift = 4 * (run % 4 / 2);
      const std::size_t high_at = 128 + 32 * half + column, high_shift = 2 * (run % 4);
      for (std::size_t i = 0; i < 16; ++i) {
        const int low = (byte_at(source, low_at + i) >> low_shift) & 15;
        const int high = (byte_at(source, high_at + i) >> high_shift) & 3;
        values[16 * part + i] = scale * static_cast<float>((low | (high << 4)) - 32);
      }
    }
  }
}

// d | codes u4 [16], low nibbles first.   real = d*level[code]
void decode_iq4_nl(const std::byte* source, std::size_t blocks, float* values) {
  for (std::size_t b = 0; b < blocks; ++b, source += 18, values += 32) {
    const float d = half_at(source, 0);
    for (std::size_t i = 0; i < 16; ++i) {
      values[i] = d * kLevels[byte_at(source, 2 + i) & 15];
      values[16 + i] = d * kLevels[byte_at(source, 2 + i) >> 4];
    }
  }
}

// d | high scale bits u2x8 [2] | low scale bits u4x8 [4] | codes u4 [128].   real = d*(scale-32)*level[code]
void decode_iq4_xs(const std::byte* source, std::size_t blocks, float* values) {
  for (std::size_t b = 0; b < blocks; ++b, source += 136, values += kLong) {
    const float d = half_at(source, 0);
    const int high_bits = u16_at(source, 2);
    for (std::size_t part = 0; part < 8; ++part) {
      const int low = (byte_at(source, 4 + part / 2) >> (4 * (part % 2))) & 15, high = (high_bits >> (2 * part)) & 3;
      const float scale = d * static_cast<float>((low | (high << 4)) - 32);
      for (std::size_t i = 0; i < 16; ++i) {
        const std::uint8_t codes = byte_at(source, 8 + 16 * part + i);
        values[32 * part + i] = scale * kLevels[codes & 15];
        values[32 * part + 16 + i] = scale * kLevels[codes >> 4];
      }
    }
  }
}

}  // namespace ctk::graph::gguf
