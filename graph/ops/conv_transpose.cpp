// ConvTranspose: each input element adds a scaled copy of the kernel to the output, with groups, in 1-D, 2-D and 3-D.
// In:  X [N, C, spatial...], W [C, M / group, kernel...], B [M] (optional), all f32.
// Out: Y [N, M, spatial...], sizes by transposed_window_of().
// Cost: N * M * C / group * inputs * taps multiply-adds; no scratch.
#include "graph/ops/check.h"
#include "graph/ops/window.h"

namespace ctk::graph {
namespace {

Status check_channels(const Node& node, std::span<const InferInput> inputs) {
  const Shape& x = inputs[0].info.shape;
  const Shape& w = inputs[1].info.shape;
  CTK_CHECK(expect_rank("X", x, 3, 2 + kMaxSpatialRank));
  CTK_CHECK(expect_rank("W", w, x.size(), x.size()));
  if (x[1] < 1 || w[0] != x[1] || w[1] < 1) {
    return input_error("input W: expected X's " + std::to_string(x[1]) + " channels as dimension 0 and at least one " +
                       "output channel, found weight shape " + to_string(w) + ". Check the weight's shape.");
  }
  const std::int64_t group = node.attributes.get_int("group", 1);
  if (group < 1 || x[1] % group != 0) {
    return input_error("group: expected a divisor of the " + std::to_string(x[1]) + " input channels, found " +
                       std::to_string(group) + ". Check the weight's shape.");
  }
  CTK_CHECK(expect_kernel_shape(node, w));
  CTK_CHECK(element_count({w[1], group}));
  if (is_present(inputs, 2)) CTK_CHECK(expect_shape("B", inputs[2].info.shape, {w[1] * group}));
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_all_f32(inputs));
  CTK_CHECK(check_channels(node, inputs));
  const Shape& w = inputs[1].info.shape;
  CTK_TRY(const Window window, transposed_window_of(node, inputs[0].info.shape, kernel_of(w)));
  Shape shape = {inputs[0].info.shape[0], w[1] * node.attributes.get_int("group", 1)};
  for (std::size_t d = 0; d < window.rank; ++d) shape.push_back(window.dims[d].output);
  return single_output(DType::f32, std::move(shape));
}

// plane += image spread by the kernel, for one input channel and one output channel.
void spread_plane(const std::array<WindowDim, 3>& dims, const float* image, const float* kernel, float* plane) {
  const auto& [depth, height, width] = dims;
  for (std::int64_t kz = 0; kz < depth.kernel; ++kz) {
    const std::int64_t shift_z = kz * depth.dilation - depth.pad_begin;
    const IndexRange range_z = positions_inside(depth.input, depth.stride, shift_z, depth.output);
    for (std::int64_t ky = 0; ky < height.kernel; ++ky) {
      const std::int64_t shift_y = ky * height.dilation - height.pad_begin;
      const IndexRange range_y = positions_inside(height.input, height.stride, shift_y, height.output);
      for (std::int64_t kx = 0; kx < width.kernel; ++kx, ++kernel) {
        const std::int64_t shift_x = kx * width.dilation - width.pad_begin;
        const IndexRange range_x = positions_inside(width.input, width.stride, shift_x, width.output);
        const float weight = *kernel;
        for (std::int64_t z = range_z.begin; z < range_z.end; ++z) {
          for (std::int64_t y = range_y.begin; y < range_y.end; ++y) {
            const std::int64_t out_z = z * depth.stride + shift_z;
            const std::int64_t out_y = y * height.stride + shift_y;
            const float* in = image + (z * height.input + y) * width.input;
            float* out = plane + (out_z * height.output + out_y) * width.output;
            for (std::int64_t x = range_x.begin; x < range_x.end; ++x)
              out[x * width.stride + shift_x] += weight * in[x];
          }
        }
      }
    }
  }
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  const float* bias = inputs.size() > 2 ? inputs[2].as<float>() : nullptr;
  CTK_TRY(const Window window, transposed_window_of(node, x, kernel_of(w)));
  const auto dims = as_volume(window);
  std::int64_t image_size = 1, plane_size = 1, kernel_size = 1;
  for (const WindowDim& dim : dims) {
    image_size *= dim.input;
    plane_size *= dim.output;
    kernel_size *= dim.kernel;
  }
  const std::int64_t group = node.attributes.get_int("group", 1);
  const std::int64_t inputs_per_group = x[1] / group;
  const std::int64_t channels = w[1] * group;
  for (std::int64_t n = 0; n < x[0]; ++n) {
    for (std::int64_t m = 0; m < channels; ++m) {
      float* plane = outputs[0].as<float>() + (n * channels + m) * plane_size;
      std::fill(plane, plane + plane_size, bias == nullptr ? 0.0f : bias[m]);
      const std::int64_t first = m / w[1] * inputs_per_group;
      for (std::int64_t c = first; c < first + inputs_per_group; ++c) {
        spread_plane(dims, inputs[0].as<float>() + (n * x[1] + c) * image_size,
                     inputs[1].as<float>() + (c * w[1] + m % w[1]) * kernel_size, plane);
      }
    }
  }
  return {};
}

}  // namespace

const OpRules& rules_ConvTranspose() {
  static const OpRules rules = {OpKind::layer, 2, 3, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
