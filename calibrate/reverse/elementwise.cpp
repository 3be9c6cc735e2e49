// Elementwise operators. dx = g * f'(x); of two operands with broadcasting, each sums over where it was repeated.
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "calibrate/reverse/rules.h"
#include "core/parallel.h"
#include "graph/ops/elementwise.h"

namespace ctk::calibrate {
namespace {

using graph::Node;
using graph::Op;

constexpr std::size_t kGrain = 4096;

// dx += g * derivative(v), v the input or the output, whichever the table says the rule reads.
template <class F>
Status through(const ReverseCall& call, const TensorView& read, F derivative) {
  const float* g = call.output_gradients[0].as<float>();
  const float* v = read.as<float>();
  float* dx = call.input_gradients[0].as<float>();
  parallel_for(call.input_gradients[0].size(), kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) dx[i] += g[i] * derivative(v[i]);
  });
  return {};
}

float gelu_derivative(float v) {
  const double x = v;
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
  return static_cast<float>(0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) + x * density);
}

float gelu_tanh_derivative(float v) {
  const double x = v, slope = std::sqrt(2.0 / std::numbers::pi);
  const double t = std::tanh(slope * (x + 0.044715 * x * x * x));
  return static_cast<float>(0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope * (1.0 + 3.0 * 0.044715 * x * x));
}

float bound(const ReverseCall& call, std::size_t index, float fallback) {
  return index < call.inputs.size() && call.inputs[index].data != nullptr ? call.inputs[index].as<float>()[0]
                                                                          : fallback;
}

using Pair = std::array<std::size_t, 2>;

// Sums partial(a, b) * g into operand `which`, in double where it was broadcast.
template <class F>
void binary(const ReverseCall& call, std::size_t which, F partial) {
  const MutableTensorView& to = call.input_gradients[which];
  if (to.data == nullptr) return;
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &g = call.output_gradients[0];
  static constexpr float kUnread = 0.0f;
  const float* x = a.data != nullptr ? a.as<float>() : &kUnread;
  const float* y = b.data != nullptr ? b.as<float>() : &kUnread;
  const std::size_t x_live = a.data != nullptr, y_live = b.data != nullptr;
  float* out = to.as<float>();
  if (a.shape == g.shape && b.shape == g.shape) {
    parallel_for(g.size(), kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) out[i] += g.as<float>()[i] * partial(x[i * x_live], y[i * y_live]);
    });
    return;
  }
  std::vector<double> sums(to.size(), 0.0);
  graph::for_each_broadcast_row<2>(
      g.shape, {&a.shape, &b.shape},
      [&](const Pair& offsets, const Pair& steps, std::size_t out_offset, std::size_t count) {
        const float* row = g.as<float>() + out_offset;
        double* sum = sums.data() + offsets[which];
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t at_x = (offsets[0] + i * steps[0]) * x_live, at_y = (offsets[1] + i * steps[1]) * y_live;
          sum[i * steps[which]] += static_cast<double>(row[i] * partial(x[at_x], y[at_y]));
        }
      });
  for (std::size_t i = 0; i < sums.size(); ++i) out[i] += static_cast<float>(sums[i]);
}

}  // namespace

Status reverse_unary(const ReverseCall& call) {
  const Node& node = call.node;
  const TensorView &x = call.inputs[0], &y = call.outputs[0], &g = call.output_gradients[0];
  const auto attribute = [&](const char* name, float fallback) { return node.attributes.get_float(name, fallback); };
  if (call.input_gradients[0].data == nullptr) return {};
  switch (node.op) {
    case Op::Abs:
      return through(call, x, [](float v) { return static_cast<float>((v > 0.0f) - (v < 0.0f)); });
    case Op::Clip: {
      const float low = bound(call, 1, -INFINITY), high = bound(call, 2, INFINITY);
      return through(call, x, [=](float v) { return v >= low && v <= high ? 1.0f : 0.0f; });
    }
    case Op::Elu: {
      const float alpha = attribute("alpha", 1.0f);
      return through(call, x, [=](float v) { return v > 0.0f ? 1.0f : alpha * std::exp(v); });
    }
    case Op::Erf:
      return through(call, x, [](float v) { return 2.0f * std::numbers::inv_sqrtpi_v<float> * std::exp(-v * v); });
    case Op::Exp:
      return through(call, x, [](float v) { return std::exp(v); });
    case Op::Gelu:
      return through(call, x,
                     graph::text_of(node, "approximate", "none") == "tanh" ? gelu_tanh_derivative : gelu_derivative);
    case Op::HardSigmoid: {
      const float alpha = attribute("alpha", 0.2f), beta = attribute("beta", 0.5f);
      return through(call, x, [=](float v) {
        const float line = alpha * v + beta;
        return line > 0.0f && line < 1.0f ? alpha : 0.0f;
      });
    }
    case Op::HardSwish:
      return through(call, x, [](float v) { return v <= -3.0f ? 0.0f : v >= 3.0f ? 1.0f : (2.0f * v + 3.0f) / 6.0f; });
    case Op::LeakyRelu: {
      const float alpha = attribute("alpha", 0.01f);
      return through(call, x, [=](float v) { return v > 0.0f ? 1.0f : alpha; });
    }
    case Op::Neg:
      return through(call, g, [](float) { return -1.0f; });
    case Op::Relu:
      return through(call, x, [](float v) { return v > 0.0f ? 1.0f : 0.0f; });
    case Op::Sigmoid:
      return through(call, y, [](float v) { return v * (1.0f - v); });
    case Op::Sqrt:
      return through(call, y, [](float v) { return v > 0.0f ? 0.5f / v : 0.0f; });
    case Op::Tanh:
      return through(call, y, [](float v) { return 1.0f - v * v; });
    default:
      return internal_error("no derivative of " + node.op_type);
  }
}

Status reverse_binary(const ReverseCall& call) {
  switch (call.node.op) {
    case Op::Add:
      for (std::size_t i = 0; i < 2; ++i) {
        if (call.input_gradients[i].data != nullptr) add_summed(call.output_gradients[0], call.input_gradients[i]);
      }
      return {};
    case Op::Sub:
      binary(call, 0, [](float, float) { return 1.0f; });
      binary(call, 1, [](float, float) { return -1.0f; });
      return {};
    case Op::Mul:
      binary(call, 0, [](float, float b) { return b; });
      binary(call, 1, [](float a, float) { return a; });
      return {};
    case Op::Div:
      binary(call, 0, [](float, float b) { return 1.0f / b; });
      binary(call, 1, [](float a, float b) { return -a / (b * b); });
      return {};
    default:
      return internal_error("no partial derivatives of " + call.node.op_type);
  }
}

void add_summed(const TensorView& from, const MutableTensorView& to) {
  const float* g = from.as<float>();
  float* out = to.as<float>();
  if (from.shape == to.shape) {
    parallel_for(to.size(), kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) out[i] += g[i];
    });
    return;
  }
  std::vector<double> sums(to.size(), 0.0);
  using One = std::array<std::size_t, 1>;
  graph::for_each_broadcast_row<1>(
      from.shape, {&to.shape}, [&](const One& offsets, const One& steps, std::size_t out_offset, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
          sums[offsets[0] + i * steps[0]] += static_cast<double>(g[out_offset + i]);
        }
      });
  for (std::size_t i = 0; i < sums.size(); ++i) out[i] += static_cast<float>(sums[i]);
}

Status expect_not_wanted(const ReverseCall& call, std::size_t input, const char* name) {
  if (input >= call.input_gradients.size() || call.input_gradients[input].data == nullptr) return {};
  return input_error(std::string(name) +
                     ": expected a constant, found a value made by the network. Gradients go back " +
                     "through the first input only; choose a sensitivity metric without gradients, such as kl.");
}

}  // namespace ctk::calibrate
