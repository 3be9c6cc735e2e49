// Conv: dX = the gradient spread back through the windows. For each group, patches' gradients [C / group * taps,
// places] = W' [C / group * taps, M / group] G [M / group, places], added to where the patches lie. Channels are shared
// out to the threads; a channel's sums run over its taps in order.
#include <algorithm>
#include <vector>

#include "calibrate/packed_matrix.h"
#include "calibrate/reverse/matrix.h"
#include "calibrate/reverse/rules.h"
#include "calibrate/reverse/windows.h"
#include "core/parallel.h"

namespace ctk::calibrate {

Status reverse_conv(const ReverseCall& call) {
  CTK_CHECK(expect_not_wanted(call, 1, "weight"));
  CTK_CHECK(expect_not_wanted(call, 2, "bias"));
  if (call.input_gradients[0].data == nullptr) return {};
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  CTK_TRY(const graph::Window window, graph::window_of(call.node, x, std::span(w).subspan(2)));
  const WindowSizes sizes(window);
  const auto groups = static_cast<std::size_t>(call.node.attributes.get_int("group", 1));
  const auto in = static_cast<std::size_t>(w[1]), out = static_cast<std::size_t>(w[0]) / groups;
  const float* weight = call.inputs[1].as<float>();
  for (std::size_t block = 0; block < static_cast<std::size_t>(x[0]) * groups; ++block) {
    const std::size_t group = block % groups;
    const float* g = call.output_gradients[0].as<float>() + block * out * sizes.places;
    float* dx = call.input_gradients[0].as<float>() + block * in * sizes.image;
    const float* w_group = weight + group * out * in * sizes.taps;
    if (out * in == 1) {  // depthwise
      for (std::size_t tap = 0; tap < sizes.taps; ++tap) {
        for_each_run(sizes, tap, [&](std::size_t place, std::size_t element, std::size_t count, std::size_t stride) {
          for (std::size_t i = 0; i < count; ++i) dx[element + i * stride] += w_group[tap] * g[place + i];
        });
      }
      continue;
    }
    const std::vector<float> w_columns = transposed(w_group, out, in * sizes.taps);  // [in * taps, out]
    const std::vector<float> g_rows = transposed(g, out, sizes.places);
    PackedMatrix packed(sizes.places, out);
    packed.pack(g_rows.data());
    constexpr std::size_t kChannels = 4;
    parallel_for((in + kChannels - 1) / kChannels, 1, [&](std::size_t begin, std::size_t end) {
      std::vector<float> patches(kChannels * sizes.taps * sizes.places);
      for (std::size_t chunk = begin; chunk < end; ++chunk) {
        const std::size_t first = chunk * kChannels, count = std::min(kChannels, in - first);
        packed.multiply(w_columns.data() + first * sizes.taps * out, out, count * sizes.taps, patches.data(),
                        sizes.places, false);
        for (std::size_t c = 0; c < count; ++c) {
          for (std::size_t tap = 0; tap < sizes.taps; ++tap) {
            const float* from = patches.data() + (c * sizes.taps + tap) * sizes.places;
            float* to = dx + (first + c) * sizes.image;
            for_each_run(sizes, tap, [&](std::size_t place, std::size_t element, std::size_t n, std::size_t stride) {
              for (std::size_t i = 0; i < n; ++i) to[element + i * stride] += from[place + i];
            });
          }
        }
      }
    });
  }
  return {};
}

}  // namespace ctk::calibrate
