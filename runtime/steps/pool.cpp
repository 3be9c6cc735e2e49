// Pooling steps: MaxPool, AveragePool, GlobalAveragePool, and ReduceMean over all pixels.
#include "kernels/pool/pool.h"

#include <algorithm>

#include "core/parallel.h"
#include "graph/ops/window.h"
#include "kernels/select.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::Op;
using graph::ValueId;
using kernels::ConvShape;

class PoolStep final : public Step {
 public:
  ConvShape shape;
  const kernels::PoolRow* kernel = nullptr;
  bool is_max = false, is_codes = false, count_include_pad = false;
  kernels::AverageU8 rule;

  Status run(const RunContext& context) override {
    const void* x = context.slots[reads[0]];
    void* y = context.slots[writes[0]];
    parallel_for(static_cast<std::size_t>(shape.batch * shape.out_height), 1, [&](std::size_t begin, std::size_t end) {
      const auto b = static_cast<std::int64_t>(begin);
      const auto e = static_cast<std::int64_t>(end);
      if (is_max && is_codes) {
        kernel->max_u8(shape, static_cast<const std::uint8_t*>(x), static_cast<std::uint8_t*>(y), b, e);
      } else if (is_max) {
        kernel->max_f32(shape, static_cast<const float*>(x), static_cast<float*>(y), b, e);
      } else if (is_codes) {
        kernel->average_u8(shape, count_include_pad, rule, static_cast<const std::uint8_t*>(x),
                           static_cast<std::uint8_t*>(y), b, e);
      } else {
        kernel->average_f32(shape, count_include_pad, static_cast<const float*>(x), static_cast<float*>(y), b, e);
      }
    });
    return {};
  }
};

// ReduceMean over exactly the spatial axes, whatever keepdims says: the same numbers as GlobalAveragePool.
bool is_spatial_mean(const PlanBuilder& builder, const Node& node) {
  if (node.op != Op::ReduceMean || node.inputs.size() < 2 || !node.inputs[1].is_valid()) return false;
  const auto& axes_info = builder.info(node.inputs[1]).constant;
  if (!axes_info) return false;
  auto axes = to_i64(*axes_info);
  const auto rank = static_cast<std::int64_t>(builder.shape(node.inputs[0]).size());
  if (!axes || rank < 3 || rank > 4) return false;
  std::vector<std::int64_t> wanted = *axes;
  for (std::int64_t& axis : wanted) axis += axis < 0 ? rank : 0;
  std::sort(wanted.begin(), wanted.end());
  std::vector<std::int64_t> spatial;
  for (std::int64_t d = 2; d < rank; ++d) spatial.push_back(d);
  return wanted == spatial;
}

ConvShape global_shape(const Shape& in) {
  const ImageExtent extent = image_extent(in);
  ConvShape s;
  s.batch = in[0];
  s.in_channels = s.out_channels = s.groups = in[1];
  s.in_width = s.kernel_width = static_cast<std::int64_t>(extent.pixels);  // pixels in a row: order does not matter
  return s;
}

Result<ConvShape> window_shape(const PlanBuilder& builder, const Node& node) {
  const Shape& in = builder.shape(node.inputs[0]);
  const auto kernel = node.attributes.get_ints("kernel_shape");
  CTK_TRY(const graph::Window window, graph::window_of(node, in, kernel));
  ConvShape s;
  s.batch = in[0];
  s.in_channels = s.out_channels = s.groups = in[1];
  const bool is_flat = in.size() == 3;
  const graph::WindowDim& x = window.dims[is_flat ? 0 : 1];
  s.in_width = x.input;
  s.out_width = x.output;
  s.kernel_width = x.kernel;
  s.stride_width = x.stride;
  s.dilation_width = x.dilation;
  s.pad_left = x.pad_begin;
  s.pad_right = x.pad_end;
  if (!is_flat) {
    const graph::WindowDim& y = window.dims[0];
    s.in_height = y.input;
    s.out_height = y.output;
    s.kernel_height = y.kernel;
    s.stride_height = y.stride;
    s.dilation_height = y.dilation;
    s.pad_top = y.pad_begin;
    s.pad_bottom = y.pad_end;
  }
  return s;
}

}  // namespace

Result<bool> make_pool_steps(PlanBuilder& builder, graph::NodeId id) {
  const Node& node = builder.graph().node(id);
  const bool is_global = node.op == Op::GlobalAveragePool || is_spatial_mean(builder, node);
  const bool is_window = node.op == Op::MaxPool || node.op == Op::AveragePool;
  if (!is_global && !is_window) return false;
  const ValueId x = node.inputs[0];
  const ValueId y = node.outputs[0];
  const Shape& in = builder.shape(x);
  if (in.size() < 3 || in.size() > 4 || builder.info(x).dtype != DType::f32 || elements(in) == 0) return false;
  if (node.outputs.size() > 1 && node.outputs[1].is_valid()) return false;
  auto step = std::make_unique<PoolStep>();
  if (is_global) {
    step->shape = global_shape(in);
  } else {
    CTK_TRY(step->shape, window_shape(builder, node));
  }
  step->is_max = node.op == Op::MaxPool;
  step->count_include_pad = node.attributes.get_int("count_include_pad", 0) != 0;
  // Codes only where both ends have them; MaxPool hands codes through and so needs the very same note.
  step->is_codes = builder.has_note(x) && builder.has_note(y) && (!step->is_max || builder.note(x) == builder.note(y));
  if (step->is_codes && !step->is_max) {
    step->rule.in_zero = builder.note(x).zero_point;
    step->rule.zero_point = builder.note(y).zero_point;
    step->rule.ratio = builder.note(x).scale / builder.note(y).scale;
  }
  step->kernel = &kernels::select(kernels::pool_rows(), builder.isas());
  step->label = step->is_max ? "pool_max" : "pool_average";
  step->row = step->kernel->name;
  const Form form = step->is_codes ? Form::codes : Form::native;
  CTK_TRY(const int from, builder.need(x, form, Layout::channels_last));
  step->reads = {from};
  step->writes = {builder.define(y, form, Layout::channels_last)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime
