#include "export/pack_quantized.h"

#include <algorithm>
#include <numeric>

namespace ctk::exporter {
namespace {

constexpr std::int64_t kLeastGroup = 4;  // shorter ones store more bits of scales than of codes

// Numbers [rows, width] as words, lowest bits first, each row from a word of its own.
std::vector<std::int32_t> pack_rows(std::size_t rows, std::size_t width, int bits, const auto& number) {
  const auto per_word = static_cast<std::size_t>(32 / bits);
  const std::size_t words = (width + per_word - 1) / per_word;
  std::vector<std::int32_t> packed(rows * words);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t w = 0; w < words; ++w) {
      std::uint32_t word = 0;
      for (std::size_t i = w * per_word; i < std::min(width, (w + 1) * per_word); ++i)
        word |= static_cast<std::uint32_t>(number(r, i)) << (static_cast<int>(i % per_word) * bits);
      packed[r * words + w] = static_cast<std::int32_t>(word);
    }
  }
  return packed;
}

}  // namespace

Result<PackedGrid> packed_grid(const QuantTensor& weight) {
  const QuantScheme& scheme = weight.scheme;
  const Shape& shape = weight.codes.shape();
  const std::string name = "scheme " + to_string(scheme) + ": expected ";
  if (scheme.is_integer_activation()) {
    return input_error(name + "activations in float, found codes. Use a scheme like w4a16_g32, or the format onnx_qdq");
  }
  if (shape.size() != 2 || weight.channel_axis != 0 || weight.group_count != 1) {
    return input_error(name + "codes [out, in] with scales along the first, found shape " + to_string(shape) +
                       ". Leave the layer out by `ignore`");
  }
  PackedGrid grid{scheme.weight_bits <= 4 ? 4 : 8, 0, scheme.is_affine};
  if (scheme.granularity != Granularity::per_group) return grid;
  grid.group_size = shape[1] % scheme.group_size == 0
                        ? scheme.group_size
                        : std::gcd<std::int64_t, std::int64_t>(shape[1], scheme.group_size);
  if (grid.group_size < kLeastGroup && grid.group_size < scheme.group_size) {
    return input_error(name + "rows that groups of " + std::to_string(scheme.group_size) +
                       " divide, or share a divisor of " + std::to_string(kLeastGroup) + " with, found " +
                       std::to_string(shape[1]) + " inputs. Use another group, or leave the layer out by `ignore`");
  }
  return grid;
}

Result<PackedWeight> pack_weight(const QuantTensor& weight) {
  PackedWeight out;
  CTK_TRY(out.grid, packed_grid(weight));
  const Shape& shape = weight.codes.shape();
  const auto rows = static_cast<std::size_t>(shape[0]), width = static_cast<std::size_t>(shape[1]);
  const int bits = out.grid.bits, middle = 1 << (bits - 1);
  const std::size_t length = out.grid.group_size == 0 ? width : static_cast<std::size_t>(out.grid.group_size);
  const std::size_t groups = width / length;
  const std::size_t stored = weight.scales.size() == 1 ? 0 : weight.scales.size() / rows;
  const auto scheme_length = static_cast<std::size_t>(std::max(1, weight.scheme.group_size));
  const auto source = [&](std::size_t row, std::size_t group) {
    return stored == 0 ? 0 : row * stored + (out.grid.group_size == 0 ? 0 : group * length / scheme_length);
  };
  const std::vector<std::int8_t> codes = unpack_codes(weight);
  const auto words =
      pack_rows(rows, width, bits, [&](std::size_t r, std::size_t i) { return codes[r * width + i] + middle; });
  out.words = Tensor::of<std::int32_t>({shape[0], static_cast<std::int64_t>(words.size() / rows)}, words);

  std::vector<float> scales(rows * groups);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t g = 0; g < groups; ++g) scales[r * groups + g] = weight.scales[source(r, g)];
  }
  const Shape table{shape[0], static_cast<std::int64_t>(groups)};
  out.scales = Tensor::of<float>(table, scales);
  if (std::ranges::all_of(scales, [](float s) { return half_to_float(float_to_half(s)) == s; })) {
    CTK_TRY(out.scales, Tensor::zeros(DType::f16, table));
    auto* halves = static_cast<std::uint16_t*>(out.scales.mutable_data());
    std::ranges::transform(scales, halves, float_to_half);
  }
  if (!out.grid.is_affine) return out;
  // Packed along the outputs: turned, packed by rows, turned back.
  const auto turned =
      pack_rows(groups, rows, bits, [&](std::size_t g, std::size_t r) { return weight.zeros[source(r, g)] + middle; });
  const std::size_t tall = turned.size() / groups;
  std::vector<std::int32_t> zeros(turned.size());
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t w = 0; w < tall; ++w) zeros[w * groups + g] = turned[g * tall + w];
  }
  out.zeros = Tensor::of<std::int32_t>({static_cast<std::int64_t>(tall), static_cast<std::int64_t>(groups)}, zeros);
  return out;
}

}  // namespace ctk::exporter
