#include <numeric>

#include "graph/ops/pool.h"
#include "graph/ops/window.h"
#include "train/torch/torch_ops.h"

namespace ctk::train {
namespace {

using graph::Window;
using graph::WindowDim;
using Ints = std::vector<std::int64_t>;

template <class T>
T must(Result<T> result) {
  TORCH_CHECK(result.has_value(), result.error().message);
  return std::move(*result);
}

Ints field(const Window& window, std::int64_t WindowDim::*member) {
  Ints values;
  for (std::size_t d = 0; d < window.rank; ++d) values.push_back(window.dims[d].*member);
  return values;
}

Shape sizes_of(const at::Tensor& x) {
  return {x.sizes().begin(), x.sizes().end()};
}
Ints kernel_of(const at::Tensor& weight) {
  return {weight.sizes().begin() + 2, weight.sizes().end()};
}

// Whether ATen's own padding, alike on both sides, gives this window's output size.
bool is_even(const Window& window) {
  for (std::size_t d = 0; d < window.rank; ++d) {
    const WindowDim& dim = window.dims[d];
    const std::int64_t room = dim.input + 2 * dim.pad_begin - dim.extent();
    if (room < 0 || room / dim.stride + 1 != dim.output) return false;
  }
  return true;
}

// x with exactly the elements the windows read, `value` where there are none.
at::Tensor padded(const at::Tensor& x, const Window& window, double value) {
  Ints pads;  // last dimension first
  for (std::size_t d = window.rank; d-- > 0;) {
    const WindowDim& dim = window.dims[d];
    pads.push_back(dim.pad_begin);
    pads.push_back((dim.output - 1) * dim.stride + dim.extent() - dim.pad_begin - dim.input);  // may cut
  }
  return at::constant_pad_nd(x, pads, value);
}

at::Tensor optional_input(const OpCall& call, std::size_t i) {
  return call.has(i) ? call.inputs[i] : at::Tensor();
}

}  // namespace

at::Tensor conv(const OpCall& call) {
  // Channels last is what LibTorch's kernels are fastest at, and what comes out stays so: after the first convolution
  // this is no copy. Weights may lie as they are.
  const at::Tensor& x =
      call.inputs[0].dim() == 4 ? call.inputs[0].contiguous(at::MemoryFormat::ChannelsLast) : call.inputs[0];
  const at::Tensor& w = call.inputs[1];
  const Window window = must(graph::window_of(call.node, sizes_of(x), kernel_of(w)));
  const bool even = is_even(window);
  const Ints zeros(window.rank, 0);
  return at::convolution(even ? x : padded(x, window, 0), w, optional_input(call, 2), field(window, &WindowDim::stride),
                         even ? field(window, &WindowDim::pad_begin) : zeros, field(window, &WindowDim::dilation),
                         false, zeros, call.node.attributes.get_int("group", 1));
}

// The whole spread first, then the part the window keeps; the bias also falls where no kernel reaches.
at::Tensor conv_transpose(const OpCall& call) {
  const at::Tensor& x = call.inputs[0];
  const at::Tensor& w = call.inputs[1];
  const Window window = must(graph::transposed_window_of(call.node, sizes_of(x), kernel_of(w)));
  const Ints zeros(window.rank, 0);
  at::Tensor y =
      at::convolution(x, w, {}, field(window, &WindowDim::stride), zeros, field(window, &WindowDim::dilation), true,
                      zeros, call.node.attributes.get_int("group", 1));
  Ints pads;
  for (std::size_t d = window.rank; d-- > 0;) {
    const WindowDim& dim = window.dims[d];
    pads.push_back(-dim.pad_begin);
    pads.push_back(dim.output + dim.pad_begin - y.size(static_cast<std::int64_t>(d) + 2));
  }
  y = at::constant_pad_nd(y, pads, 0);
  if (!call.has(2)) return y;
  Ints channels(window.rank + 2, 1);
  channels[1] = -1;
  return y + call.inputs[2].reshape(channels);
}

at::Tensor gemm(const OpCall& call) {
  const bool transposes_b = call.node.attributes.get_int("transB", 0) != 0;
  const at::Tensor a = call.node.attributes.get_int("transA", 0) != 0 ? call.inputs[0].t() : call.inputs[0];
  const at::Tensor b = transposes_b ? call.inputs[1].t() : call.inputs[1];
  const float alpha = call.node.attributes.get_float("alpha", 1.0f);
  const float beta = call.node.attributes.get_float("beta", 1.0f);
  if (call.has(2)) return at::addmm(call.inputs[2], a, b, beta, alpha);
  const at::Tensor y = at::mm(a, b);
  return alpha == 1.0f ? y : y * alpha;
}

at::Tensor mat_mul(const OpCall& call) {
  return at::matmul(call.inputs[0], call.inputs[1]);
}

at::Tensor max_pool(const OpCall& call) {
  const at::Tensor& x = call.inputs[0];
  const Window window = must(graph::pool_window_of(call.node, sizes_of(x)));
  const Ints kernel = field(window, &WindowDim::kernel), stride = field(window, &WindowDim::stride);
  const Ints dilation = field(window, &WindowDim::dilation);
  bool even = is_even(window);
  for (std::size_t d = 0; d < window.rank; ++d)
    even = even && 2 * window.dims[d].pad_begin <= kernel[d];  // ATen's rule
  const at::Tensor in = even ? x : padded(x, window, -std::numeric_limits<double>::infinity());
  const Ints pads = even ? field(window, &WindowDim::pad_begin) : Ints(window.rank, 0);
  if (window.rank == 1) return at::max_pool1d(in, kernel, stride, pads, dilation);
  if (window.rank == 2) return at::max_pool2d(in, kernel, stride, pads, dilation);
  return at::max_pool3d(in, kernel, stride, pads, dilation);
}

// Sums under the windows by a convolution with ones or ATen's pool, divided by what counts in each.
at::Tensor average_pool(const OpCall& call) {
  const at::Tensor& x = call.inputs[0];
  const Window window = must(graph::pool_window_of(call.node, sizes_of(x)));
  const bool counts_pads = call.node.attributes.get_int("count_include_pad", 0) != 0;
  at::Tensor counts = at::ones({1, 1}, at::kFloat);
  bool is_dilated = false;
  std::int64_t taps = 1;
  for (std::size_t d = 0; d < window.rank; ++d) {
    const WindowDim& dim = window.dims[d];
    std::vector<float> inside;
    for (std::int64_t o = 0; o < dim.output; ++o) {
      const graph::IndexRange range =
          graph::taps_inside(dim, o, counts_pads ? dim.pad_begin : 0, counts_pads ? dim.pad_end : 0);
      inside.push_back(static_cast<float>(range.end - range.begin));
    }
    counts = counts.unsqueeze(-1) * at::tensor(inside);
    is_dilated = is_dilated || dim.dilation != 1;
    taps *= dim.kernel;
  }
  const at::Tensor in = padded(x, window, 0);
  const Ints kernel = field(window, &WindowDim::kernel), stride = field(window, &WindowDim::stride);
  at::Tensor sums;
  if (is_dilated) {
    Ints shape = {x.size(1), 1};
    shape.insert(shape.end(), kernel.begin(), kernel.end());
    const Ints zeros(window.rank, 0);
    sums = at::convolution(in, at::ones(shape, at::kFloat), {}, stride, zeros, field(window, &WindowDim::dilation),
                           false, zeros, x.size(1));
  } else {
    sums = window.rank == 1   ? at::avg_pool1d(in, kernel, stride)
           : window.rank == 2 ? at::avg_pool2d(in, kernel, stride)
                              : at::avg_pool3d(in, kernel, stride);
    counts = counts / static_cast<double>(taps);
  }
  return sums / counts;
}

at::Tensor global_average_pool(const OpCall& call) {
  Ints axes(static_cast<std::size_t>(call.inputs[0].dim() - 2));
  std::iota(axes.begin(), axes.end(), 2);
  return axes.empty() ? call.inputs[0] : at::mean(call.inputs[0], axes, true);
}

at::Tensor frozen_batch_norm(const OpCall& call) {
  return at::batch_norm(call.inputs[0], call.inputs[1], call.inputs[2], call.inputs[3], call.inputs[4], false, 0.0,
                        call.node.attributes.get_float("epsilon", 1e-5f), false);
}

Outputs layer_norm(const OpCall& call) {
  const at::Tensor& x = call.inputs[0];
  const double epsilon = call.node.attributes.get_float("epsilon", 1e-5f);
  std::int64_t axis = call.node.attributes.get_int("axis", -1);
  if (axis < 0) axis += x.dim();
  const Ints sizes(x.sizes().begin() + axis, x.sizes().end());
  const bool fits = call.inputs[1].sizes() == at::IntArrayRef(sizes) &&
                    (!call.has(2) || call.inputs[2].sizes() == at::IntArrayRef(sizes));
  Outputs outputs;
  if (fits) {
    outputs.push_back(at::layer_norm(x, sizes, call.inputs[1], optional_input(call, 2), epsilon));
  } else {
    const at::Tensor y = at::layer_norm(x, sizes, {}, {}, epsilon) * call.inputs[1];
    outputs.push_back(call.has(2) ? y + call.inputs[2] : y);
  }
  if (call.outputs.size() == 1) return outputs;
  Ints axes(sizes.size());
  std::iota(axes.begin(), axes.end(), axis);
  const at::Tensor mean = at::mean(x, axes, true);
  outputs.push_back(mean);
  outputs.push_back(at::rsqrt(at::mean(at::square(x - mean), axes, true) + epsilon));
  return outputs;
}

at::Tensor rms_norm(const OpCall& call) {
  const at::Tensor& x = call.inputs[0];
  std::int64_t axis = call.node.attributes.get_int("axis", -1);
  if (axis < 0) axis += x.dim();
  Ints axes(static_cast<std::size_t>(x.dim() - axis));
  std::iota(axes.begin(), axes.end(), axis);
  const double epsilon = call.node.attributes.get_float("epsilon", 1e-5f);
  return x * at::rsqrt(at::mean(at::square(x), axes, true) + epsilon) * call.inputs[1];
}

}  // namespace ctk::train
