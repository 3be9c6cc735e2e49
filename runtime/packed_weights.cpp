#include "runtime/packed_weights.h"

#include "core/tensor.h"

namespace ctk::runtime {
namespace {

std::string key_of(graph::NodeId node, const std::string& row, kernels::ConvShape shape, std::size_t bytes) {
  std::string key = std::to_string(node.index) + " " + row + " " + std::to_string(bytes);
  for (std::int64_t size :
       {shape.in_height, shape.in_width, shape.in_channels, shape.out_height, shape.out_width, shape.out_channels,
        shape.kernel_height, shape.kernel_width, shape.stride_height, shape.stride_width, shape.dilation_height,
        shape.dilation_width, shape.pad_top, shape.pad_left, shape.groups, std::int64_t{shape.is_transposed}}) {
    key += " " + std::to_string(size);
  }
  return key;
}

}  // namespace

Result<std::shared_ptr<const void>> PackedWeights::get(graph::NodeId node, const std::string& row,
                                                       const kernels::ConvShape& shape, std::size_t bytes,
                                                       const std::function<void(void*)>& pack) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const void>& buffer = buffers_[key_of(node, row, shape, bytes)];
  if (buffer == nullptr) {
    std::shared_ptr<void> made = allocate_aligned(bytes);
    if (made == nullptr) return input_error("out of memory: packed weights need " + std::to_string(bytes) + " bytes");
    pack(made.get());
    buffer = std::move(made);
  }
  return buffer;
}

}  // namespace ctk::runtime
