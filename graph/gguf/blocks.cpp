#include "graph/gguf/blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/parallel.h"
#include "graph/gguf/block_rules.h"

namespace ctk::graph::gguf {
namespace {

constexpr std::size_t kShort = 32;                    // elements of a short block
constexpr std::size_t kGrain = std::size_t{1} << 16;  // elements a thread decodes at a time

void decode_f32(const std::byte* source, std::size_t blocks, float* values) {
  std::memcpy(values, source, blocks * sizeof(float));
}

void decode_f16(const std::byte* source, std::size_t blocks, float* values) {
  for (std::size_t i = 0; i < blocks; ++i) values[i] = half_at(source, 2 * i);
}

void decode_bf16(const std::byte* source, std::size_t blocks, float* values) {
  for (std::size_t i = 0; i < blocks; ++i)
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(u16_at(source, 2 * i)) << 16);
}

// d | [m] | [fifth bits u1 [4]] | nibbles u4 [16]: element i in the low half of byte i, element 16 + i in the high
// half.
template <int kBits, bool kHasMinimum>
struct Nibbles {
  static constexpr std::size_t kHead = kHasMinimum ? 4 : 2;
  static constexpr std::size_t kFifth = kBits == 5 ? 4 : 0;
  static constexpr std::size_t kBytes = kHead + kFifth + 16;
  static constexpr int kZero = kHasMinimum ? 0 : 1 << (kBits - 1);  // what a stored code 0 is below real 0

  static void decode(const std::byte* source, std::size_t blocks, float* values) {
    for (std::size_t b = 0; b < blocks; ++b, source += kBytes, values += kShort) {
      const float d = half_at(source, 0), m = kHasMinimum ? half_at(source, 2) : 0.0f;
      std::uint32_t fifth = 0;
      if constexpr (kFifth != 0) std::memcpy(&fifth, source + kHead, sizeof fifth);
      for (std::size_t i = 0; i < kShort; ++i) {
        const int nibble = (byte_at(source, kHead + kFifth + i % 16) >> (4 * (i / 16))) & 15;
        const int code = (nibble | static_cast<int>((fifth >> i & 1) << 4)) - kZero;
        const float product = d * static_cast<float>(code);
        values[i] = kHasMinimum ? product + m : product;
      }
    }
  }

  static void encode(const std::int8_t* codes, const std::uint16_t* scales, const std::uint16_t* minima,
                     std::size_t blocks, std::byte* target) {
    for (std::size_t b = 0; b < blocks; ++b, target += kBytes, codes += kShort) {
      std::memcpy(target, scales + b, 2);
      if constexpr (kHasMinimum) std::memcpy(target + 2, minima + b, 2);
      std::uint32_t fifth = 0;
      for (std::size_t i = 0; i < 16; ++i) {
        const unsigned low = static_cast<unsigned>(codes[i] + kZero),
                       high = static_cast<unsigned>(codes[16 + i] + kZero);
        target[kHead + kFifth + i] = static_cast<std::byte>((low & 15) | ((high & 15) << 4));
        fifth |= (low >> 4 & 1) << i | (high >> 4 & 1) << (16 + i);
      }
      if constexpr (kFifth != 0) std::memcpy(target + kHead, &fifth, sizeof fifth);
    }
  }
};

// d | codes i8 [32]
void decode_q8_0(const std::byte* source, std::size_t blocks, float* values) {
  for (std::size_t b = 0; b < blocks; ++b, source += 34, values += kShort) {
    const float d = half_at(source, 0);
    for (std::size_t i = 0; i < kShort; ++i)
      values[i] = d * static_cast<float>(static_cast<std::int8_t>(byte_at(source, 2 + i)));
  }
}

void encode_q8_0(const std::int8_t* codes, const std::uint16_t* scales, const std::uint16_t*, std::size_t blocks,
                 std::byte* target) {
  for (std::size_t b = 0; b < blocks; ++b, target += 34, codes += kShort) {
    std::memcpy(target, scales + b, 2);
    std::memcpy(target + 2, codes, kShort);
  }
}

template <int kBits, bool kHasMinimum>
constexpr BlockType nibble_row(std::uint32_t id, std::string_view name) {
  using Rule = Nibbles<kBits, kHasMinimum>;
  const int count = 1 << kBits;
  return {id,         name, kShort, Rule::kBytes, Rule::decode, Rule::encode, -Rule::kZero, count - 1 - Rule::kZero,
          kHasMinimum};
}

constexpr std::array kTypes{
    BlockType{0, "F32", 1, 4, decode_f32},
    BlockType{1, "F16", 1, 2, decode_f16},
    nibble_row<4, false>(2, "Q4_0"),
    nibble_row<4, true>(3, "Q4_1"),
    nibble_row<5, false>(6, "Q5_0"),
    nibble_row<5, true>(7, "Q5_1"),
    BlockType{8, "Q8_0", kShort, 34, decode_q8_0, encode_q8_0, -128, 127},
    BlockType{9, "Q8_1", kShort, 40, nullptr},
    BlockType{10, "Q2_K", 256, 84, decode_q2_k},
    BlockType{11, "Q3_K", 256, 110, decode_q3_k},
    BlockType{12, "Q4_K", 256, 144, decode_q4_k},
    BlockType{13, "Q5_K", 256, 176, decode_q5_k},
    BlockType{14, "Q6_K", 256, 210, decode_q6_k},
    BlockType{15, "Q8_K", 256, 292, nullptr},
    BlockType{16, "IQ2_XXS", 256, 66, nullptr},
    BlockType{17, "IQ2_XS", 256, 74, nullptr},
    BlockType{18, "IQ3_XXS", 256, 98, nullptr},
    BlockType{19, "IQ1_S", 256, 50, nullptr},
    BlockType{20, "IQ4_NL", kShort, 18, decode_iq4_nl},
    BlockType{21, "IQ3_S", 256, 110, nullptr},
    BlockType{22, "IQ2_S", 256, 82, nullptr},
    BlockType{23, "IQ4_XS", 256, 136, decode_iq4_xs},
    BlockType{24, "I8", 1, 1, nullptr},
    BlockType{25, "I16", 1, 2, nullptr},
    BlockType{26, "I32", 1, 4, nullptr},
    BlockType{27, "I64", 1, 8, nullptr},
    BlockType{28, "F64", 1, 8, nullptr},
    BlockType{29, "IQ1_M", 256, 56, nullptr},
    BlockType{30, "BF16", 1, 2, decode_bf16},
    BlockType{34, "TQ1_0", 256, 54, nullptr},
    BlockType{35, "TQ2_0", 256, 66, nullptr},
    BlockType{39, "MXFP4", kShort, 17, nullptr},
};

std::string quoted(std::string_view name) {
  return "\"" + std::string(name) + "\"";
}

}  // namespace

std::span<const BlockType> block_types() {
  return kTypes;
}

const BlockType* find_block_type(std::uint32_t id) {
  const auto found = std::ranges::find(kTypes, id, &BlockType::id);
  return found == kTypes.end() ? nullptr : &*found;
}

const BlockType* find_block_type(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &BlockType::name);
  return found == kTypes.end() ? nullptr : &*found;
}

std::string readable_block_types() {
  std::string names;
  for (const BlockType& row : kTypes) {
    if (row.decode != nullptr) names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

Result<Tensor> dequantize(const BlockType& type, Shape shape, std::span<const std::byte> bytes) {
  if (type.decode == nullptr) {
    return input_error("expected a tensor of type " + readable_block_types() + ", found " + quoted(type.name) +
                       ". Convert the file to one of these");
  }
  CTK_TRY(const std::size_t count, element_count(shape));
  if (count % type.elements != 0 || bytes.size() != count / type.elements * type.bytes) {
    return input_error("expected whole blocks of " + std::to_string(type.bytes) + " bytes for " +
                       std::to_string(count) + " numbers of type " + quoted(type.name) + ", found " +
                       std::to_string(bytes.size()) + " bytes. The file is damaged");
  }
  CTK_TRY(Tensor out, Tensor::zeros(DType::f32, std::move(shape)));
  float* values = static_cast<float*>(out.mutable_data());
  parallel_for(count / type.elements, kGrain / type.elements, [&](std::size_t begin, std::size_t end) {
    type.decode(bytes.data() + begin * type.bytes, end - begin, values + begin * type.elements);
  });
  return out;
}

Result<std::string> encode(const BlockType& type, std::span<const std::int8_t> codes,
                           std::span<const std::uint16_t> scales, std::span<const std::uint16_t> minima) {
  if (type.encode == nullptr) {
    return input_error("expected a block type of plain codes (Q4_0, Q4_1, Q5_0, Q5_1, Q8_0), found " +
                       quoted(type.name) + ". Choose one of these");
  }
  const std::size_t blocks = codes.size() / type.elements, wanted_minima = type.has_minimum ? blocks : 0;
  if (codes.size() % type.elements != 0 || scales.size() != blocks || minima.size() != wanted_minima) {
    return input_error("type " + quoted(type.name) + ": expected " + std::to_string(type.elements) +
                       " codes for each scale" + (type.has_minimum ? " and minimum" : "") + ", found " +
                       std::to_string(codes.size()) + " codes, " + std::to_string(scales.size()) + " scales, " +
                       std::to_string(minima.size()) + " minima. Repeat scales of longer groups for every block");
  }
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] >= type.lowest_code && codes[i] <= type.highest_code) continue;
    return input_error("type " + quoted(type.name) + ": expected codes in " + std::to_string(type.lowest_code) + ".." +
                       std::to_string(type.highest_code) + ", found " + std::to_string(codes[i]) + " at " +
                       std::to_string(i) + ". Choose a type of more bits");
  }
  std::string out(blocks * type.bytes, '\0');
  type.encode(codes.data(), scales.data(), minima.data(), blocks, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

}  // namespace ctk::graph::gguf
