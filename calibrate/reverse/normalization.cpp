// Softmax and the normalizations. Scales and shifts must be constants; sums are in double.
#include <cmath>
#include <vector>

#include "calibrate/reverse/rules.h"
#include "core/parallel.h"
#include "graph/ops/elementwise.h"

namespace ctk::calibrate {
namespace {

constexpr std::size_t kGrainRows = 4;

// g * scale, scale broadcast to g.
std::vector<float> scaled(const TensorView& g, const TensorView& scale) {
  std::vector<float> values(g.size());
  graph::map_binary<float, float>(g, scale, {DType::f32, g.shape, values.data()}, graph::MultiplyValues());
  return values;
}

}  // namespace

// dx = y (g - sum(g y)) along the axis.
Status reverse_softmax(const ReverseCall& call) {
  const Shape& shape = call.outputs[0].shape;
  CTK_TRY(const std::size_t axis, graph::resolve_axis(call.node.attributes.get_int("axis", -1), shape.size()));
  std::size_t inner = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= static_cast<std::size_t>(shape[d]);
  const auto count = static_cast<std::size_t>(shape[axis]);
  const float *y = call.outputs[0].as<float>(), *g = call.output_gradients[0].as<float>();
  float* dx = call.input_gradients[0].as<float>();
  if (call.outputs[0].size() == 0) return {};
  parallel_for(call.outputs[0].size() / count, kGrainRows, [&](std::size_t begin, std::size_t end) {
    for (std::size_t line = begin; line < end; ++line) {
      const std::size_t base = line / inner * count * inner + line % inner;
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) {
        sum += static_cast<double>(g[base + i * inner]) * static_cast<double>(y[base + i * inner]);
      }
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = base + i * inner;
        dx[at] += y[at] * (g[at] - static_cast<float>(sum));
      }
    }
  });
  return {};
}

// With u = g * scale, n = x or x - mean, r = 1 / sqrt(mean(n^2) + epsilon):
//   RMS: dx = r u - r^3 n mean(u n);   layer: the same less r mean(u).
Status reverse_normalization(const ReverseCall& call) {
  CTK_CHECK(expect_not_wanted(call, 1, "scale"));
  CTK_CHECK(expect_not_wanted(call, 2, "shift"));
  if (call.input_gradients[0].data == nullptr) return {};
  const Shape& shape = call.inputs[0].shape;
  CTK_TRY(const std::size_t axis, graph::resolve_axis(call.node.attributes.get_int("axis", -1), shape.size()));
  const double epsilon = static_cast<double>(call.node.attributes.get_float("epsilon", 1e-5f));
  const bool centres = call.node.op == graph::Op::LayerNormalization;
  std::size_t count = 1;
  for (std::size_t d = axis; d < shape.size(); ++d) count *= static_cast<std::size_t>(shape[d]);
  if (call.inputs[0].size() == 0) return {};
  const std::vector<float> u_all = scaled(call.output_gradients[0], call.inputs[1]);
  const float* x_all = call.inputs[0].as<float>();
  float* dx_all = call.input_gradients[0].as<float>();
  const auto width = static_cast<double>(count);
  parallel_for(call.inputs[0].size() / count, kGrainRows, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const float *x = x_all + row * count, *u = u_all.data() + row * count;
      double mean = 0, squares = 0, u_sum = 0, product = 0;
      for (std::size_t i = 0; centres && i < count; ++i) mean += static_cast<double>(x[i]) / width;
      for (std::size_t i = 0; i < count; ++i) {
        const double n = static_cast<double>(x[i]) - mean;
        squares += n * n;
        u_sum += static_cast<double>(u[i]);
        product += static_cast<double>(u[i]) * n;
      }
      const double r = 1.0 / std::sqrt(squares / width + epsilon);
      const double shift = centres ? r * u_sum / width : 0.0, slope = r * r * r * product / width;
      for (std::size_t i = 0; i < count; ++i) {
        const double n = static_cast<double>(x[i]) - mean;
        dx_all[row * count + i] += static_cast<float>(r * static_cast<double>(u[i]) - slope * n - shift);
      }
    }
  });
  return {};
}

// In inference mode: dx = g * scale / sqrt(variance + epsilon), a factor a channel.
Status reverse_batch_normalization(const ReverseCall& call) {
  for (std::size_t i = 1; i < 5; ++i) CTK_CHECK(expect_not_wanted(call, i, "parameter of the normalization"));
  if (call.input_gradients[0].data == nullptr) return {};
  const Shape& shape = call.inputs[0].shape;
  const auto channels = static_cast<std::size_t>(shape.size() > 1 ? shape[1] : 1);
  const double epsilon = static_cast<double>(call.node.attributes.get_float("epsilon", 1e-5f));
  const std::size_t total = call.inputs[0].size();
  if (total == 0) return {};
  const std::size_t plane = total / static_cast<std::size_t>(shape[0]) / channels;
  const float* g = call.output_gradients[0].as<float>();
  float* dx = call.input_gradients[0].as<float>();
  for (std::size_t i = 0; i < total; i += plane) {
    const std::size_t c = i / plane % channels;
    const double variance = static_cast<double>(call.inputs[4].as<float>()[c]);
    const auto factor =
        static_cast<float>(static_cast<double>(call.inputs[1].as<float>()[c]) / std::sqrt(variance + epsilon));
    for (std::size_t j = i; j < i + plane; ++j) dx[j] += g[j] * factor;
  }
  return {};
}

}  // namespace ctk::calibrate
