// Windows as runs: for one tap of the kernel, which element of the image each place of the output reads.
#pragma once

#include <array>
#include <cstddef>

#include "graph/ops/window.h"

namespace ctk::calibrate {

struct WindowSizes {
  explicit WindowSizes(const graph::Window& window) : dims(graph::as_volume(window)) {
    for (const graph::WindowDim& dim : dims) {
      image *= static_cast<std::size_t>(dim.input);
      places *= static_cast<std::size_t>(dim.output);
      taps *= static_cast<std::size_t>(dim.kernel);
    }
  }
  std::array<graph::WindowDim, graph::kMaxSpatialRank> dims;  // depth, height, width
  std::size_t image = 1, places = 1, taps = 1;                // elements of one channel
};

// run(place, element, count, stride): places place + i read elements element + i * stride of the channel's image.
// Places whose tap lies in the padding have no run.
template <class Run>
void for_each_run(const WindowSizes& sizes, std::size_t tap, Run&& run) {
  const auto& [depth, height, width] = sizes.dims;
  const auto at = static_cast<std::int64_t>(tap);
  const std::int64_t kx = at % width.kernel, ky = at / width.kernel % height.kernel,
                     kz = at / width.kernel / height.kernel;
  const auto range = [](const graph::WindowDim& dim, std::int64_t k) {
    return graph::positions_inside(dim.output, dim.stride, k * dim.dilation - dim.pad_begin, dim.input);
  };
  const graph::IndexRange zs = range(depth, kz), ys = range(height, ky), xs = range(width, kx);
  if (xs.begin >= xs.end) return;
  for (std::int64_t z = zs.begin; z < zs.end; ++z) {
    const std::int64_t in_z = z * depth.stride + kz * depth.dilation - depth.pad_begin;
    for (std::int64_t y = ys.begin; y < ys.end; ++y) {
      const std::int64_t in_y = y * height.stride + ky * height.dilation - height.pad_begin;
      const std::int64_t in_x = xs.begin * width.stride + kx * width.dilation - width.pad_begin;
      run(static_cast<std::size_t>((z * height.output + y) * width.output + xs.begin),
          static_cast<std::size_t>((in_z * height.input + in_y) * width.input + in_x),
          static_cast<std::size_t>(xs.end - xs.begin), static_cast<std::size_t>(width.stride));
    }
  }
}

}  // namespace ctk::calibrate
