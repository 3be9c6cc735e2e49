// Pools and means: MaxPool hands the gradient to the element that won (of equal ones the first), averages share it out.
#include <vector>

#include "calibrate/reverse/rules.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/pool.h"
#include "graph/ops/reduce.h"

namespace ctk::calibrate {
namespace {

// Calls visit(offset of an element in the whole input) for the taps of one position.
template <class Visit>
void for_each_element(const std::array<graph::WindowDim, 3>& dims, const std::array<graph::IndexRange, 3>& taps,
                      const std::array<std::int64_t, 3>& at, Visit&& visit) {
  const auto& [depth, height, width] = dims;
  const auto position = [&](int d, std::int64_t k) {
    return at[static_cast<std::size_t>(d)] * dims[static_cast<std::size_t>(d)].stride -
           dims[static_cast<std::size_t>(d)].pad_begin + k * dims[static_cast<std::size_t>(d)].dilation;
  };
  for (std::int64_t kz = taps[0].begin; kz < taps[0].end; ++kz) {
    for (std::int64_t ky = taps[1].begin; ky < taps[1].end; ++ky) {
      for (std::int64_t kx = taps[2].begin; kx < taps[2].end; ++kx) {
        visit((position(0, kz) * height.input + position(1, ky)) * width.input + position(2, kx));
      }
    }
  }
}

// go(image, image's gradient, taps, position, g) for every output element.
template <class Go>
Status for_each_position(const ReverseCall& call, Go&& go) {
  if (call.input_gradients[0].data == nullptr) return {};
  const Shape& shape = call.inputs[0].shape;
  CTK_TRY(const graph::Window window, graph::pool_window_of(call.node, shape));
  const auto dims = graph::as_volume(window);
  const std::int64_t image_size = dims[0].input * dims[1].input * dims[2].input;
  const float* x = call.inputs[0].as<float>();
  const float* g = call.output_gradients[0].as<float>();
  for (std::int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
    const float* image = x == nullptr ? nullptr : x + plane * image_size;
    float* dx = call.input_gradients[0].as<float>() + plane * image_size;
    std::array<std::int64_t, 3> at;
    std::array<graph::IndexRange, 3> taps;
    for (at[0] = 0; at[0] < dims[0].output; ++at[0]) {
      taps[0] = graph::taps_inside(dims[0], at[0], 0, 0);
      for (at[1] = 0; at[1] < dims[1].output; ++at[1]) {
        taps[1] = graph::taps_inside(dims[1], at[1], 0, 0);
        for (at[2] = 0; at[2] < dims[2].output; ++at[2]) {
          taps[2] = graph::taps_inside(dims[2], at[2], 0, 0);
          go(dims, image, dx, taps, at, *g++);
        }
      }
    }
  }
  return {};
}

}  // namespace

Status reverse_max_pool(const ReverseCall& call) {
  return for_each_position(
      call, [](const auto& dims, const float* image, float* dx, const auto& taps, const auto& at, float g) {
        std::int64_t best = -1;
        for_each_element(dims, taps, at, [&](std::int64_t i) {
          if (best < 0 || image[i] > image[best]) best = i;
        });
        if (best >= 0) dx[best] += g;
      });
}

Status reverse_average_pool(const ReverseCall& call) {
  const bool counts_pads = call.node.attributes.get_int("count_include_pad", 0) != 0;
  return for_each_position(
      call, [counts_pads](const auto& dims, const float*, float* dx, const auto& taps, const auto& at, float g) {
        double count = 1.0;
        for (std::size_t d = 0; d < 3; ++d) {
          const graph::IndexRange counted =
              counts_pads ? graph::taps_inside(dims[d], at[d], dims[d].pad_begin, dims[d].pad_end) : taps[d];
          count *= static_cast<double>(counted.end - counted.begin);
        }
        const auto share = static_cast<float>(static_cast<double>(g) / count);
        for_each_element(dims, taps, at, [&](std::int64_t i) { dx[i] += share; });
      });
}

// GlobalAveragePool, ReduceMean, ReduceSum: every reduced element gets the same share.
Status reverse_mean(const ReverseCall& call) {
  if (call.input_gradients[0].data == nullptr) return {};
  const Shape& shape = call.inputs[0].shape;
  graph::AxisSet axes;
  if (call.node.op == graph::Op::GlobalAveragePool) {
    for (std::size_t d = 2; d < shape.size(); ++d) axes.set(d);
  } else {
    const TensorView none;
    CTK_TRY(axes, graph::reduced_axes(call.node, call.inputs.size() > 1 ? call.inputs[1] : none, shape.size()));
  }
  double count = 1.0;
  Shape kept = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!axes[d]) continue;
    count *= static_cast<double>(shape[d]);
    kept[d] = 1;
  }
  const auto factor = static_cast<float>(call.node.op == graph::Op::ReduceSum ? 1.0 : 1.0 / count);
  const TensorView g = {DType::f32, kept, call.output_gradients[0].data};
  using One = std::array<std::size_t, 1>;
  graph::for_each_broadcast_row<1>(shape, {&g.shape},
                                   [&](const One& offsets, const One& steps, std::size_t out, std::size_t rows) {
                                     float* dx = call.input_gradients[0].as<float>() + out;
                                     for (std::size_t i = 0; i < rows; ++i)
                                       dx[i] += factor * g.as<float>()[offsets[0] + i * steps[0]];
                                   });
  return {};
}

}  // namespace ctk::calibrate
