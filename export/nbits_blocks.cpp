#include "export/nbits_blocks.h"

#include <algorithm>
#include <bit>

namespace ctk::exporter {
namespace {

constexpr std::size_t kLeastBlock = 16, kMostBlock = 256;

// Numbers of `bits` bits a row, low half of a byte first; the last half byte is 0.
Tensor packed_rows(const Shape& shape, std::size_t rows, std::span<const std::uint8_t> numbers, int bits) {
  if (bits == 8) return Tensor::of<std::uint8_t>(shape, numbers);
  const std::size_t width = numbers.size() / rows, bytes = (width + 1) / 2;
  std::vector<std::uint8_t> packed(rows * bytes);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < width; ++i)
      packed[r * bytes + i / 2] |= static_cast<std::uint8_t>(numbers[r * width + i] << (i % 2 * 4));
  }
  return Tensor::of<std::uint8_t>(shape, packed);
}

}  // namespace

Result<NbitsBlocks> nbits_blocks(const QuantTensor& weight) {
  const Shape& shape = weight.codes.shape();
  const std::string scheme = "scheme " + to_string(weight.scheme) + ": expected ";
  if (shape.size() != 2 || weight.channel_axis != 0 || weight.group_count != 1)
    return input_error(scheme + "codes [out, in] with scales along the first, found shape " + to_string(shape) +
                       ". Leave the layer out by `ignore`");
  const auto rows = static_cast<std::size_t>(shape[0]), width = static_cast<std::size_t>(shape[1]);
  const bool has_groups = weight.scheme.granularity == Granularity::per_group;
  const std::size_t length = has_groups ? static_cast<std::size_t>(weight.scheme.group_size) : width;
  // Lowest set bit: the largest power of two that divides a group. A whole row may be cut anywhere.
  const std::size_t block = has_groups ? std::min(kMostBlock, length & (~length + 1))
                                       : std::clamp(std::bit_ceil(width), kLeastBlock, kMostBlock);
  if (block < kLeastBlock) {
    return input_error(scheme + "groups of a multiple of 16, as MatMulNBits has them, found " + std::to_string(length) +
                       ". Use groups of 32, 64 or 128, or leave the layer out by `ignore`");
  }
  NbitsBlocks out;
  out.bits = weight.scheme.weight_bits <= 4 ? 4 : 8;
  out.block_size = static_cast<int>(block);
  const std::size_t blocks = (width + block - 1) / block;
  const std::size_t groups = weight.scales.size() == 1 ? 0 : weight.scales.size() / rows;
  const int middle = 1 << (out.bits - 1);
  const std::vector<std::int8_t> codes = unpack_codes(weight);
  const auto unsigned_code = [&](int code) { return static_cast<std::uint8_t>(code + middle); };
  std::vector<std::uint8_t> numbers(rows * blocks * block), zeros(weight.scheme.is_affine ? rows * blocks : 0);
  std::vector<float> scales(rows * blocks);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t at = groups == 0 ? 0 : r * groups + (has_groups ? b * block / length : 0);
      const int zero = weight.scheme.is_affine ? weight.zeros[at] : 0;
      scales[r * blocks + b] = weight.scales[at];
      if (weight.scheme.is_affine) zeros[r * blocks + b] = unsigned_code(zero);
      for (std::size_t i = 0; i < block; ++i) {
        const std::size_t column = b * block + i;
        numbers[(r * blocks + b) * block + i] = unsigned_code(column < width ? codes[r * width + column] : zero);
      }
    }
  }
  const auto n = static_cast<std::int64_t>(rows), count = static_cast<std::int64_t>(blocks);
  out.codes = packed_rows({n, count, static_cast<std::int64_t>(block) * out.bits / 8}, rows, numbers, out.bits);
  out.scales = Tensor::of<float>({n, count}, scales);
  if (weight.scheme.is_affine) out.zeros = packed_rows({n, (count * out.bits + 7) / 8}, rows, zeros, out.bits);
  return out;
}

}  // namespace ctk::exporter
