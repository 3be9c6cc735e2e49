// How the scales of QuantizeLinear and DequantizeLinear lie over a tensor, and how codes are read and written.
#pragma once

#include "graph/ops/check.h"

namespace ctk::graph {

// The tensor seen as [outer, axis, inner]. Element (o, a, i) has the scale (and zero point)
// o * outer_step + a / block * axis_step + i * inner_step.
struct ScaleLayout {
  std::size_t outer = 1, axis = 1, inner = 1;
  std::size_t outer_step = 0, axis_step = 0, inner_step = 0;
  std::size_t block = 1;
};

// Per tensor (one scale), per axis (scale [D] along attribute `axis`, default 1) or blocked (attribute block_size > 0:
// scale shaped like x, with ceil(D / block_size) along the axis). Does not allocate unless it fails.
// Errors: input (scale shape, axis or block_size that fit none of the three).
Result<ScaleLayout> scale_layout_of(const Node& node, const Shape& x, const Shape& scale);

// Calls visit(element, scale) over all elements in order.
template <class Visit>
void for_each_scaled(const ScaleLayout& layout, Visit&& visit) {
  std::size_t element = 0;
  for (std::size_t o = 0; o < layout.outer; ++o) {
    for (std::size_t a = 0; a < layout.axis; ++a) {
      const std::size_t first = o * layout.outer_step + a / layout.block * layout.axis_step;
      for (std::size_t i = 0; i < layout.inner; ++i) visit(element++, first + i * layout.inner_step);
    }
  }
}

struct CodeRange {
  std::int64_t least, most;
};
// The codes of an integer type that can be quantized to: u8, i8, u16, i16, u4, i4. {0, 0} for any other type.
CodeRange code_range(DType dtype);

// Reads any code type, and i32; 4-bit codes lie two a byte, the first in the low nibble. 0 where data is null.
std::int64_t read_code(const TensorView& codes, std::size_t index);
void write_code(const MutableTensorView& codes, std::size_t index, std::int64_t code);

}  // namespace ctk::graph
