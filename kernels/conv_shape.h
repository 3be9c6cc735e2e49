// Geometry of a 2-D convolution on channels-last (NHWC) activations; 1-D uses height 1.
#pragma once

#include <cstdint>

namespace ctk::kernels {

struct ConvShape {
  std::int64_t batch = 1;
  std::int64_t in_height = 1, in_width = 1, in_channels = 1;
  std::int64_t out_height = 1, out_width = 1, out_channels = 1;
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride_height = 1, stride_width = 1;
  std::int64_t dilation_height = 1, dilation_width = 1;
  std::int64_t pad_top = 0, pad_left = 0;      // where windows start; how far they reach follows from the output size
  std::int64_t pad_bottom = 0, pad_right = 0;  // read by average pooling only: padding that counts (see pool.cpp)
  std::int64_t groups = 1;
  bool is_transposed = false;  // ConvTranspose: output pixel o gathers input (o + pad - k*dilation)/stride
                               // where the division is exact and in range, else nothing

  std::int64_t channels_per_group() const { return in_channels / groups; }
  std::int64_t outputs_per_group() const { return out_channels / groups; }
  std::int64_t reduction() const { return kernel_height * kernel_width * channels_per_group(); }
  std::int64_t pixels() const { return batch * out_height * out_width; }
};

}  // namespace ctk::kernels
