#include "kernels/depthwise_w8a8/depthwise_w8a8.h"

#include "core/parallel.h"

namespace ctk::kernels {

#define CTK_KERNEL(symbol) extern const DepthwiseIntRow symbol;
#include "kernels/depthwise_w8a8/kernels.def"
#undef CTK_KERNEL

std::span<const DepthwiseIntRow> depthwise_w8a8_rows() {
  static const DepthwiseIntRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/depthwise_w8a8/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

void depthwise_int(const DepthwiseIntRow& row, const ConvShape& shape, const void* packed, const std::uint8_t* x,
                   std::uint8_t x_zero_point, const EpilogueInt& epilogue, void* y, void* scratch) {
  const std::size_t per_thread = row.scratch_bytes(shape);
  parallel_for(static_cast<std::size_t>(shape.batch * shape.out_height), 1, [&](std::size_t begin, std::size_t end) {
    row.run(shape, packed, x, x_zero_point, epilogue, y, static_cast<std::int64_t>(begin),
            static_cast<std::int64_t>(end),
            static_cast<char*>(scratch) + static_cast<std::size_t>(thread_index()) * per_thread);
  });
}

}  // namespace ctk::kernels
