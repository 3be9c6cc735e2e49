#include "calibrate/reverse/weight_gradient.h"

#include <algorithm>
#include <string>

#include "calibrate/reverse/matrix.h"
#include "calibrate/reverse/windows.h"
#include "core/parallel.h"
#include "core/printable.h"

namespace ctk::calibrate {
namespace {

// Patches of `channels` channels, transposed: [channels * taps, places].
std::vector<float> patch_columns(const WindowSizes& sizes, const float* image, std::size_t channels) {
  std::vector<float> columns(channels * sizes.taps * sizes.places, 0.0f);
  parallel_for(channels, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c) {
      for (std::size_t tap = 0; tap < sizes.taps; ++tap) {
        float* to = columns.data() + (c * sizes.taps + tap) * sizes.places;
        const float* from = image + c * sizes.image;
        for_each_run(sizes, tap, [&](std::size_t place, std::size_t element, std::size_t count, std::size_t stride) {
          for (std::size_t i = 0; i < count; ++i) to[place + i] = from[element + i * stride];
        });
      }
    }
  });
  return columns;
}

float tap_sum(const WindowSizes& sizes, std::size_t tap, const float* image, const float* g) {
  double sum = 0;
  for_each_run(sizes, tap, [&](std::size_t place, std::size_t element, std::size_t count, std::size_t stride) {
    for (std::size_t i = 0; i < count; ++i) {
      sum += static_cast<double>(image[element + i * stride]) * static_cast<double>(g[place + i]);
    }
  });
  return static_cast<float>(sum);
}

Result<std::vector<float>> of_convolution(const graph::Node& node, const Shape& w, const Tensor& input,
                                          const Tensor& gradient) {
  const Shape& x = input.shape();
  CTK_TRY(const graph::Window window, graph::window_of(node, x, std::span(w).subspan(2)));
  const WindowSizes sizes(window);
  const auto groups = static_cast<std::size_t>(node.attributes.get_int("group", 1));
  const auto in = static_cast<std::size_t>(w[1]), out = static_cast<std::size_t>(w[0]) / groups;
  const std::size_t k = in * sizes.taps;
  std::vector<float> result(groups * out * k, 0.0f);
  for (std::size_t n = 0; n < static_cast<std::size_t>(x[0]); ++n) {
    const float* image = input.values<float>().data() + n * groups * in * sizes.image;
    const float* g = gradient.values<float>().data() + n * groups * out * sizes.places;
    if (in * out == 1) {  // depthwise
      parallel_for(groups, 4, [&](std::size_t begin, std::size_t end) {
        for (std::size_t c = begin; c < end; ++c) {
          for (std::size_t tap = 0; tap < sizes.taps; ++tap) {
            result[c * k + tap] += tap_sum(sizes, tap, image + c * sizes.image, g + c * sizes.places);
          }
        }
      });
      continue;
    }
    for (std::size_t group = 0; group < groups; ++group) {
      const std::vector<float> columns = patch_columns(sizes, image + group * in * sizes.image, in);
      add_product(g + group * out * sizes.places, columns.data(), out, k, sizes.places,
                  result.data() + group * out * k);
    }
  }
  return result;
}

Error unknown_layer(const graph::Graph& graph, const graph::Layer& layer) {
  return input_error(printable(graph.address(layer.node)) + ": expected Conv, Gemm or MatMul, found " +
                     printable(graph.node(layer.node).op_type) +
                     ". Leave it float with `ignore`, or choose sensitivity metric kl.");
}

}  // namespace

Result<std::vector<float>> weight_gradient(const graph::Graph& graph, const graph::Layer& layer, const Tensor& input,
                                           const Tensor& gradient) {
  const graph::Node& node = graph.node(layer.node);
  const auto channels = static_cast<std::size_t>(layer.channels), k = static_cast<std::size_t>(layer.reduction);
  switch (node.op) {
    case graph::Op::Conv:
      return of_convolution(node, graph.value(layer.weight).constant->shape(), input, gradient);
    case graph::Op::Gemm:
    case graph::Op::MatMul: {
      const std::size_t rows = input.size() / k;
      const std::vector<float> x = transposed(input.values<float>().data(), rows, k);
      const std::vector<float> g = transposed(gradient.values<float>().data(), rows, channels);
      std::vector<float> result(channels * k, 0.0f);
      add_product(g.data(), x.data(), channels, k, rows, result.data());
      return result;
    }
    default:
      return unknown_layer(graph, layer);
  }
}

Result<std::vector<float>> layer_rows(const graph::Graph& graph, const graph::Layer& layer, const Tensor& input) {
  const graph::Node& node = graph.node(layer.node);
  const auto values = input.values<float>();
  if (node.op == graph::Op::Gemm || node.op == graph::Op::MatMul)
    return std::vector<float>(values.begin(), values.end());
  if (node.op != graph::Op::Conv) return unknown_layer(graph, layer);
  const Shape &x = input.shape(), &w = graph.value(layer.weight).constant->shape();
  CTK_TRY(const graph::Window window, graph::window_of(node, x, std::span(w).subspan(2)));
  const WindowSizes sizes(window);
  const auto groups = static_cast<std::size_t>(node.attributes.get_int("group", 1));
  const auto in = static_cast<std::size_t>(w[1]), samples = static_cast<std::size_t>(x[0]), k = in * sizes.taps;
  std::vector<float> rows(groups * samples * sizes.places * k);
  for (std::size_t block = 0; block < samples * groups; ++block) {
    const std::size_t n = block / groups, group = block % groups;
    const std::vector<float> columns = patch_columns(sizes, values.data() + block * in * sizes.image, in);
    const std::vector<float> own = transposed(columns.data(), k, sizes.places);
    std::copy(own.begin(), own.end(), rows.begin() + static_cast<std::ptrdiff_t>((group * samples + n) * own.size()));
  }
  return rows;
}

}  // namespace ctk::calibrate
