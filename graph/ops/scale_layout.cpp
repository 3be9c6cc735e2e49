#include "graph/ops/scale_layout.h"

#include <string>

namespace ctk::graph {

Result<ScaleLayout> scale_layout_of(const Node& node, const Shape& x, const Shape& scale) {
  const std::int64_t block = node.attributes.get_int("block_size", 0);
  ScaleLayout layout;
  if (block < 0) {
    return input_error("block_size: expected 0 or more, found " + std::to_string(block) + ". Correct the attribute.");
  }
  if (block == 0 && (scale.empty() || (scale.size() == 1 && scale[0] == 1))) {
    for (std::int64_t dim : x) layout.inner *= static_cast<std::size_t>(dim);
    return layout;
  }
  CTK_TRY(const std::size_t axis, resolve_axis(node.attributes.get_int("axis", 1), x.size()));
  for (std::size_t d = 0; d < x.size(); ++d) {
    std::size_t& part = d < axis ? layout.outer : d == axis ? layout.axis : layout.inner;
    part *= static_cast<std::size_t>(x[d]);
  }
  if (block == 0) {
    if (scale.size() != 1 || scale[0] != x[axis]) {
      return input_error("input scale: expected a scalar or [" + std::to_string(x[axis]) + "] for axis " +
                         std::to_string(axis) + " of " + to_string(x) + ", found shape " + to_string(scale) +
                         ". Check axis and block_size.");
    }
    layout.axis_step = 1;
    return layout;
  }
  const std::int64_t blocks = x[axis] / block + (x[axis] % block != 0 ? 1 : 0);
  bool fits = scale.size() == x.size();
  for (std::size_t d = 0; fits && d < x.size(); ++d) fits = scale[d] == (d == axis ? blocks : x[d]);
  if (!fits) {
    return input_error("input scale: expected the shape " + to_string(x) + " with " + std::to_string(blocks) +
                       " along axis " + std::to_string(axis) + " for block_size " + std::to_string(block) +
                       ", found shape " + to_string(scale) + ". Check axis and block_size.");
  }
  layout.block = static_cast<std::size_t>(block);
  layout.outer_step = static_cast<std::size_t>(blocks) * layout.inner;
  layout.axis_step = layout.inner;
  layout.inner_step = 1;
  return layout;
}

CodeRange code_range(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return {0, 255};
    case DType::i8:
      return {-128, 127};
    case DType::u16:
      return {0, 65535};
    case DType::i16:
      return {-32768, 32767};
    case DType::u4:
      return {0, 15};
    case DType::i4:
      return {-8, 7};
    default:
      return {0, 0};
  }
}

std::int64_t read_code(const TensorView& codes, std::size_t index) {
  if (codes.data == nullptr) return 0;
  switch (codes.dtype) {
    case DType::u8:
      return codes.as<std::uint8_t>()[index];
    case DType::i8:
      return codes.as<std::int8_t>()[index];
    case DType::u16:
      return codes.as<std::uint16_t>()[index];
    case DType::i16:
      return codes.as<std::int16_t>()[index];
    case DType::i32:
      return codes.as<std::int32_t>()[index];
    case DType::u4:
      return (codes.as<std::uint8_t>()[index / 2] >> (4 * (index % 2))) & 15;
    case DType::i4: {
      const int nibble = (codes.as<std::uint8_t>()[index / 2] >> (4 * (index % 2))) & 15;
      return nibble >= 8 ? nibble - 16 : nibble;
    }
    default:
      return 0;
  }
}

void write_code(const MutableTensorView& codes, std::size_t index, std::int64_t code) {
  switch (codes.dtype) {
    case DType::u8:
      codes.as<std::uint8_t>()[index] = static_cast<std::uint8_t>(code);
      return;
    case DType::i8:
      codes.as<std::int8_t>()[index] = static_cast<std::int8_t>(code);
      return;
    case DType::u16:
      codes.as<std::uint16_t>()[index] = static_cast<std::uint16_t>(code);
      return;
    case DType::i16:
      codes.as<std::int16_t>()[index] = static_cast<std::int16_t>(code);
      return;
    case DType::u4:
    case DType::i4: {
      // The low nibble comes first and clears its neighbour, so that an odd tail leaves 0 there.
      std::uint8_t& byte = codes.as<std::uint8_t>()[index / 2];
      const auto nibble = static_cast<std::uint8_t>(code & 15);
      byte = index % 2 == 0 ? nibble : static_cast<std::uint8_t>(byte | (nibble << 4));
      return;
    }
    default:
      return;
  }
}

}  // namespace ctk::graph
