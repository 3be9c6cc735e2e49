#include "graph/ops/check.h"
#include "train/torch/tensors.h"
#include "train/torch/torch_ops.h"

namespace ctk::train {
namespace {

using Ints = std::vector<std::int64_t>;

// Weights [from, to] of one dimension: Resize is separable, so its own evaluation of the identity gives them.
at::Tensor resize_weights(const OpCall& call, std::int64_t from, std::int64_t to, float scale, bool by_size) {
  graph::Node node = call.node;
  node.attributes.erase("axes");
  const at::Tensor unit = at::eye(from, at::kFloat);
  const std::array<float, 2> scales = {1.0f, scale};
  const std::array<std::int64_t, 2> sizes = {from, to};
  const TensorView inputs[] = {view_of(unit), TensorView{},
                               by_size ? TensorView{} : TensorView{DType::f32, {2}, scales.data()},
                               by_size ? TensorView{DType::i64, {2}, sizes.data()} : TensorView{}};
  const at::Tensor weights = at::zeros({from, to}, at::kFloat);
  const MutableTensorView outputs[] = {{DType::f32, {from, to}, weights.mutable_data_ptr()}};
  const Status status =
      graph::rules_of(graph::Op::Resize)
          .evaluate(node, std::span<const TensorView>(inputs), std::span<const MutableTensorView>(outputs));
  TORCH_CHECK(status.has_value(), status.error().message);
  return weights;
}

}  // namespace

at::Tensor move_by_rule(const OpCall& call) {
  const at::Tensor& x = call.inputs[0];
  std::vector<at::Tensor> inputs(call.inputs.begin(), call.inputs.end());
  inputs[0] = at::arange(x.numel(), at::kLong).reshape(x.sizes());
  graph::ValueInfo info = *call.outputs[0];
  info.dtype = DType::i64;
  const graph::ValueInfo* outputs[] = {&info};
  const at::Tensor places = run_undifferentiated(OpCall{call.node, inputs, call.known, outputs})[0];
  return x.reshape(-1).index_select(0, places.reshape(-1)).reshape(call.shape());
}

at::Tensor gather(const OpCall& call) {
  const at::Tensor& data = call.inputs[0];
  std::int64_t axis = call.node.attributes.get_int("axis", 0);
  if (axis < 0) axis += data.dim();
  const at::Tensor indices = call.inputs[1].to(at::kLong).reshape(-1);
  const at::Tensor places = at::where(indices.lt(0), indices + data.size(axis), indices);
  const at::Tensor rows = axis == 0 && data.dim() == 2 ? at::embedding(data, places) : data.index_select(axis, places);
  return rows.reshape(call.shape());
}

at::Tensor slice(const OpCall& call) {
  at::Tensor y = call.inputs[0];
  const Ints starts = call.ints(1), steps = call.ints(4);
  Ints axes = call.ints(3);
  for (std::int64_t step : steps) {
    if (step < 0) return move_by_rule(call);
  }
  for (std::size_t i = 0; i < starts.size(); ++i) {
    std::int64_t axis = axes.empty() ? static_cast<std::int64_t>(i) : axes[i];
    if (axis < 0) axis += y.dim();
    const std::int64_t size = y.size(axis);
    const std::int64_t start = std::clamp<std::int64_t>(starts[i] < 0 ? starts[i] + size : starts[i], 0, size);
    const std::int64_t count = call.shape()[static_cast<std::size_t>(axis)];
    const std::int64_t step = steps.empty() || count < 2 ? 1 : steps[i];
    y = at::slice(y, axis, start, count == 0 ? start : start + (count - 1) * step + 1, step);
  }
  return y;
}

at::Tensor pad(const OpCall& call) {
  if (call.node.attributes.get_string("mode", "constant") != "constant") return move_by_rule(call);
  const at::Tensor& x = call.inputs[0];
  const Ints given = call.ints(1), axes = call.ints(3);
  const std::size_t count = given.size() / 2;
  Ints pads(static_cast<std::size_t>(2 * x.dim()), 0);  // last dimension first
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t axis = axes.empty() ? static_cast<std::int64_t>(i) : axes[i];
    if (axis < 0) axis += x.dim();
    const auto at = static_cast<std::size_t>(2 * (x.dim() - 1 - axis));
    pads[at] = given[i];
    pads[at + 1] = given[count + i];
  }
  return at::constant_pad_nd(x, pads, call.has(2) ? call.inputs[2].item() : at::Scalar(0));
}

at::Tensor resize(const OpCall& call) {
  at::Tensor y = call.inputs[0];
  if (!at::isFloatingType(y.scalar_type())) return move_by_rule(call);  // nearest then: elements of any type
  const bool by_size = call.has(3) && call.inputs[3].numel() != 0;
  const at::Tensor scales = by_size || !call.has(2) ? at::Tensor() : call.inputs[2].contiguous();
  const Ints axes = call.node.attributes.get_ints("axes");
  for (std::int64_t d = 0; d < y.dim(); ++d) {
    std::size_t at = static_cast<std::size_t>(d);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if ((axes[i] < 0 ? axes[i] + y.dim() : axes[i]) == d) at = i;
    }
    bool is_named = axes.empty();
    for (std::int64_t axis : axes) is_named = is_named || (axis < 0 ? axis + y.dim() : axis) == d;
    const std::int64_t from = y.size(d), to = call.shape()[static_cast<std::size_t>(d)];
    const float scale = by_size || !is_named ? 1.0f : scales.const_data_ptr<float>()[at];
    if (from == to && scale == 1.0f) continue;
    y = at::matmul(y.movedim(d, -1), resize_weights(call, from, to, scale, by_size)).movedim(-1, d);
  }
  return y;
}

Outputs split(const OpCall& call) {
  std::int64_t axis = call.node.attributes.get_int("axis", 0);
  if (axis < 0) axis += call.inputs[0].dim();
  Ints sizes;
  for (const graph::ValueInfo* info : call.outputs) sizes.push_back(info->shape[static_cast<std::size_t>(axis)]);
  return at::split_with_sizes(call.inputs[0], sizes, axis);
}

}  // namespace ctk::train
