#include "runtime/steps/layer.h"

#include <algorithm>

#include "graph/ops/window.h"

namespace ctk::runtime {

using graph::Graph;
using graph::Layer;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

namespace {

// The single node that reads `value`, when it carries a fusion note naming `by`.
NodeId absorbed_reader(const PlanBuilder& builder, ValueId value, NodeId by) {
  const auto& readers = builder.graph().value(value).consumers;
  if (readers.size() != 1 || builder.graph().node(readers[0]).absorbed_by != by) return {};
  return readers[0];
}

// Bounds of the activation `by` has absorbed behind `value`, moving `value` past it.
// An integer layer always takes its activation along: a detour through floats would round twice.
bool absorb_activation(const PlanBuilder& builder, NodeId by, bool is_integer, ValueId& value, FusedLayer& fused) {
  const bool is_alone = is_integer ? builder.is_sole_use(value) : builder.is_internal(value);
  if (!is_alone || builder.has_note(value)) return false;
  const NodeId reader = absorbed_reader(builder, value, by);
  if (!reader.is_valid()) return false;
  const auto clamp = clamp_of(builder.graph(), reader);
  if (!clamp) return false;
  fused.clamp = *clamp;
  fused.absorbed.push_back(reader);
  value = builder.graph().node(reader).outputs[0];
  return true;
}

void absorb_residual(const PlanBuilder& builder, bool is_integer, FusedLayer& fused) {
  const Graph& graph = builder.graph();
  const ValueId mid = fused.output;
  if (!builder.is_internal(mid)) return;
  const NodeId add = absorbed_reader(builder, mid, fused.layer.node);
  if (!add.is_valid() || graph.node(add).op != Op::Add) return;
  const auto& operands = graph.node(add).inputs;
  const ValueId other = operands[0] == mid ? operands[1] : operands[0];
  const ValueId sum = graph.node(add).outputs[0];
  if (other == mid || builder.shape(other) != builder.shape(mid)) return;
  FusedLayer trial = fused;
  trial.absorbed.push_back(add);
  trial.output = sum;
  absorb_activation(builder, add, is_integer, trial.output, trial);
  // Integer: both operands and the result must be stored as codes, or the one-pass form would round elsewhere than the
  // node-by-node form. Float: none of them may be.
  const bool all_codes = builder.has_note(mid) && builder.has_note(other) && builder.has_note(trial.output);
  const bool all_float = !builder.has_note(mid) && !builder.has_note(other) && !builder.has_note(trial.output);
  if (is_integer ? !all_codes : !all_float) return;
  trial.residual = other;
  trial.mid = mid;
  fused = std::move(trial);
}

Result<std::optional<kernels::ConvShape>> conv_geometry(const PlanBuilder& builder, const Layer& layer) {
  const Node& node = builder.graph().node(layer.node);
  const Shape& in = builder.shape(layer.input);
  const Shape& weight = builder.shape(layer.weight);
  if (in.size() < 3 || in.size() > 4) return std::optional<kernels::ConvShape>{};
  const bool is_transposed = node.op == Op::ConvTranspose;
  const std::span<const std::int64_t> kernel(weight.data() + 2, weight.size() - 2);
  CTK_TRY(const graph::Window window,
          is_transposed ? graph::transposed_window_of(node, in, kernel) : graph::window_of(node, in, kernel));
  const bool is_flat = in.size() == 3;
  const graph::WindowDim& y = window.dims[0];
  const graph::WindowDim& x = window.dims[is_flat ? 0 : 1];
  kernels::ConvShape s;
  s.batch = in[0];
  s.in_channels = in[1];
  s.out_channels = layer.channels;
  s.groups = node.attributes.get_int("group", 1);
  s.in_width = in.back();
  s.kernel_width = x.kernel;
  s.stride_width = x.stride;
  s.dilation_width = x.dilation;
  s.pad_left = x.pad_begin;
  s.out_width = x.output;
  if (!is_flat) {
    s.in_height = in[2];
    s.kernel_height = y.kernel;
    s.stride_height = y.stride;
    s.dilation_height = y.dilation;
    s.pad_top = y.pad_begin;
    s.out_height = y.output;
  }
  s.is_transposed = is_transposed;
  return std::optional(s);
}

}  // namespace

bool is_product(const PlanBuilder& builder, const Layer& layer) {
  const Op op = builder.graph().node(layer.node).op;
  return op == Op::Gemm || op == Op::MatMul;
}

Result<std::optional<kernels::ConvShape>> layer_geometry(const PlanBuilder& builder, const Layer& layer) {
  if (!is_product(builder, layer)) return conv_geometry(builder, layer);
  const Shape& in = builder.shape(layer.input);
  kernels::ConvShape s;
  s.in_channels = layer.reduction;
  s.out_channels = layer.channels;
  s.in_width = s.out_width = layer.reduction == 0 ? 0 : static_cast<std::int64_t>(elements(in)) / layer.reduction;
  return std::optional(s);
}

FusedLayer fuse_layer(const PlanBuilder& builder, const Layer& layer, bool is_integer) {
  FusedLayer fused;
  fused.layer = layer;
  fused.output = builder.graph().node(layer.node).outputs[0];
  if (!absorb_activation(builder, layer.node, is_integer, fused.output, fused))
    absorb_residual(builder, is_integer, fused);
  return fused;
}

Result<std::vector<float>> layer_bias(const PlanBuilder& builder, const Layer& layer) {
  if (!layer.bias.is_valid()) return std::vector<float>{};
  const auto& constant = builder.graph().value(layer.bias).constant;
  if (!constant) return internal_error("the bias is not a constant");
  CTK_TRY(const Tensor bias, to_f32(*constant));
  const auto values = bias.values<float>();
  const auto channels = static_cast<std::size_t>(layer.channels);
  if (values.size() == channels) return std::vector<float>(values.begin(), values.end());
  if (values.size() == 1) return std::vector<float>(channels, values[0]);
  return input_error("expected a bias of " + std::to_string(channels) + " values, found shape " +
                     to_string(bias.shape()));
}

kernels::ConvShape packed_geometry(const PlanBuilder& builder, const Layer& layer, kernels::ConvShape shape) {
  if (is_product(builder, layer)) shape.in_width = shape.out_width = 1;
  return shape;
}

template <class T>
KernelOrder<T> to_kernel_order(const PlanBuilder& builder, const Layer& layer, const kernels::ConvShape& shape,
                               std::span<const T> weight) {
  const Op op = builder.graph().node(layer.node).op;
  if (op == Op::Conv || (is_product(builder, layer) && layer.channel_axis == 0)) return {{}, weight};
  std::vector<T> out(weight.size());
  if (is_product(builder, layer)) {  // [K, N] -> [N, K]
    const auto n = static_cast<std::size_t>(layer.channels);
    const auto k = static_cast<std::size_t>(layer.reduction);
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = 0; j < n; ++j) out[j * k + i] = weight[i * n + j];
    }
  } else {  // ConvTranspose [in, out/group, taps] -> [out, in/group, taps].
    const auto per_group_in = static_cast<std::size_t>(shape.channels_per_group());
    const auto per_group_out = static_cast<std::size_t>(shape.outputs_per_group());
    const auto taps = static_cast<std::size_t>(shape.kernel_height * shape.kernel_width);
    for (std::size_t g = 0; g < static_cast<std::size_t>(shape.groups); ++g) {
      for (std::size_t i = 0; i < per_group_in; ++i) {
        for (std::size_t o = 0; o < per_group_out; ++o) {
          for (std::size_t t = 0; t < taps; ++t) {
            out[((g * per_group_out + o) * per_group_in + i) * taps + t] =
                weight[((g * per_group_in + i) * per_group_out + o) * taps + t];
          }
        }
      }
    }
  }
  const std::span<const T> values(out);
  return {std::move(out), values};  // moving a vector leaves its elements where they are
}

template KernelOrder<float> to_kernel_order(const PlanBuilder&, const Layer&, const kernels::ConvShape&,
                                            std::span<const float>);
template KernelOrder<std::int8_t> to_kernel_order(const PlanBuilder&, const Layer&, const kernels::ConvShape&,
                                                  std::span<const std::int8_t>);

Result<bool> make_layer_steps(PlanBuilder& builder, NodeId id) {
  const Graph& graph = builder.graph();
  const auto layer = graph::layer_of(graph, id);
  if (!layer) return false;
  const Node& node = graph.node(id);
  if (node.attributes.get_float("alpha", 1.0f) != 1.0f || node.attributes.get_float("beta", 1.0f) != 1.0f) {
    if (node.op == Op::Gemm) return false;  // fold_gemm_factors has not run on this graph
  }
  CTK_TRY(const auto shape, layer_geometry(builder, *layer));
  const bool is_integer = node.scheme.is_integer_activation();
  if (!shape || elements(builder.shape(layer->input)) == 0) return false;
  if (is_integer && graph.value(layer->weight).quantized == nullptr) {
    return internal_error("scheme " + to_string(node.scheme) + " is noted, but the weight has no codes");
  }
  const FusedLayer fused = fuse_layer(builder, *layer, is_integer);
  if (is_integer) {
    CTK_CHECK(make_integer_layer(builder, fused, *shape));
  } else if (is_group_layer(builder, *layer)) {
    CTK_CHECK(make_group_layer(builder, fused, *shape));
  } else {
    CTK_CHECK(make_float_layer(builder, fused, *shape));
  }
  for (NodeId absorbed : fused.absorbed) builder.mark_done(absorbed);
  return true;
}

}  // namespace ctk::runtime
