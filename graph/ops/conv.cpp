// Conv: 1-D, 2-D and 3-D cross-correlation with groups, as the reference: plain loops, float sums.
// In:  X [N, C, spatial...], W [M, C / group, kernel...], B [M] (optional), all f32.
// Out: Y [N, M, spatial...].
// Cost: N * M * C / group * outputs * taps multiply-adds; no scratch.
#include "graph/ops/check.h"
#include "graph/ops/window.h"

namespace ctk::graph {
namespace {

Status check_channels(const Node& node, std::span<const InferInput> inputs) {
  const Shape& x = inputs[0].info.shape;
  const Shape& w = inputs[1].info.shape;
  CTK_CHECK(expect_rank("X", x, 3, 2 + kMaxSpatialRank));
  CTK_CHECK(expect_rank("W", w, x.size(), x.size()));
  const std::int64_t group = node.attributes.get_int("group", 1);
  if (group < 1 || w[0] < 1 || w[0] % group != 0) {
    return input_error("group: expected a divisor of the " + std::to_string(w[0]) + " output channels, found " +
                       std::to_string(group) + ". Check the weight's shape.");
  }
  if (x[1] < 1 || x[1] % group != 0 || x[1] / group != w[1]) {
    return input_error("input W: expected X's " + std::to_string(x[1]) + " channels / group " + std::to_string(group) +
                       " as dimension 1, found weight shape " + to_string(w) + ". Check the weight's shape.");
  }
  CTK_CHECK(expect_kernel_shape(node, w));
  if (is_present(inputs, 2)) CTK_CHECK(expect_shape("B", inputs[2].info.shape, {w[0]}));
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_all_f32(inputs));
  CTK_CHECK(check_channels(node, inputs));
  const Shape& w = inputs[1].info.shape;
  CTK_TRY(const Window window, window_of(node, inputs[0].info.shape, kernel_of(w)));
  Shape shape = {inputs[0].info.shape[0], w[0]};
  for (std::size_t d = 0; d < window.rank; ++d) shape.push_back(window.dims[d].output);
  return single_output(DType::f32, std::move(shape));
}

// plane += kernel (*) image, for one input channel and one output channel.
void accumulate_plane(const std::array<WindowDim, 3>& dims, const float* image, const float* kernel, float* plane) {
  const auto& [depth, height, width] = dims;
  for (std::int64_t kz = 0; kz < depth.kernel; ++kz) {
    const std::int64_t shift_z = kz * depth.dilation - depth.pad_begin;
    const IndexRange range_z = positions_inside(depth.output, depth.stride, shift_z, depth.input);
    for (std::int64_t ky = 0; ky < height.kernel; ++ky) {
      const std::int64_t shift_y = ky * height.dilation - height.pad_begin;
      const IndexRange range_y = positions_inside(height.output, height.stride, shift_y, height.input);
      for (std::int64_t kx = 0; kx < width.kernel; ++kx, ++kernel) {
        const std::int64_t shift_x = kx * width.dilation - width.pad_begin;
        const IndexRange range_x = positions_inside(width.output, width.stride, shift_x, width.input);
        const float weight = *kernel;
        for (std::int64_t z = range_z.begin; z < range_z.end; ++z) {
          for (std::int64_t y = range_y.begin; y < range_y.end; ++y) {
            const std::int64_t in_z = z * depth.stride + shift_z;
            const std::int64_t in_y = y * height.stride + shift_y;
            const float* in = image + (in_z * height.input + in_y) * width.input;
            float* out = plane + (z * height.output + y) * width.output;
            if (width.stride == 1) {
              for (std::int64_t x = range_x.begin; x < range_x.end; ++x) out[x] += weight * in[x + shift_x];
            } else {
              for (std::int64_t x = range_x.begin; x < range_x.end; ++x) {
                out[x] += weight * in[x * width.stride + shift_x];
              }
            }
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
  CTK_TRY(const Window window, window_of(node, x, kernel_of(w)));
  const auto dims = as_volume(window);
  std::int64_t image_size = 1, plane_size = 1, kernel_size = 1;
  for (const WindowDim& dim : dims) {
    image_size *= dim.input;
    plane_size *= dim.output;
    kernel_size *= dim.kernel;
  }
  const std::int64_t outputs_per_group = w[0] / node.attributes.get_int("group", 1);
  for (std::int64_t n = 0; n < x[0]; ++n) {
    for (std::int64_t m = 0; m < w[0]; ++m) {
      float* plane = outputs[0].as<float>() + (n * w[0] + m) * plane_size;
      std::fill(plane, plane + plane_size, bias == nullptr ? 0.0f : bias[m]);
      const std::int64_t first_channel = m / outputs_per_group * w[1];
      for (std::int64_t c = 0; c < w[1]; ++c) {
        accumulate_plane(dims, inputs[0].as<float>() + (n * x[1] + first_channel + c) * image_size,
                         inputs[1].as<float>() + (m * w[1] + c) * kernel_size, plane);
      }
    }
  }
  return {};
}

}  // namespace

const OpRules& rules_Conv() {
  static const OpRules rules = {OpKind::layer, 2, 3, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
