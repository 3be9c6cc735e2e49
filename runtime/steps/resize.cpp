// Resize of up to two neighbouring dimensions by the kernel `resize`: those of an image channels-last, others as they
// lie. On codes where both ends have them: nearest with one note at both moves codes, everything else gives the bits of
// dequantize, resize, quantize.
#include "kernels/resize/resize.h"

#include <algorithm>

#include "core/parallel.h"
#include "graph/ops/resize.h"
#include "kernels/select.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::Op;
using graph::ResizeTable;
using graph::ResizeTables;
using graph::ValueId;

constexpr std::int64_t kGrainElements = 4096;

class ResizeStep final : public Step {
 public:
  const kernels::ResizeRow* kernel = nullptr;
  kernels::Resize resize;
  ResizeTable rows, columns;  // what `resize` points to
  bool moves = false, is_codes = false;
  std::size_t element_bytes = 4;
  kernels::ResizeCodes codes;

  Status run(const RunContext& context) override {
    const auto count = static_cast<std::size_t>(resize.batch * resize.y.out);
    const auto grain = static_cast<std::size_t>(1 + kGrainElements / (resize.x.out * resize.channels));
    parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
      const auto b = static_cast<std::int64_t>(begin), e = static_cast<std::int64_t>(end);
      if (moves) {
        kernel->nearest(resize, element_bytes, context.slots[reads[0]], context.slots[writes[0]], b, e);
      } else if (is_codes) {
        kernel->blend_u8(resize, codes, context.at<const std::uint8_t>(reads[0]), context.at<std::uint8_t>(writes[0]),
                         b, e);
      } else {
        kernel->blend_f32(resize, context.at<const float>(reads[0]), context.at<float>(writes[0]), b, e);
      }
    });
    return {};
  }
};

Result<ResizeTables> tables_of(const PlanBuilder& builder, const Node& node) {
  std::vector<Tensor> held(node.inputs.size());
  std::vector<TensorView> inputs(node.inputs.size());
  inputs[0] = {builder.info(node.inputs[0]).dtype, builder.shape(node.inputs[0]), nullptr};
  for (std::size_t i = 2; i < inputs.size(); ++i) {  // without contents there would have been no shape
    if (!node.inputs[i].is_valid()) continue;
    const auto& constant = builder.graph().value(node.inputs[i]).constant;
    held[i] = constant ? *constant : *builder.info(node.inputs[i]).constant;
    inputs[i] = held[i].view();
  }
  return graph::resize_tables(node, inputs);
}

// The dimensions that the kernel's axes stand for.
struct Placed {
  std::size_t rows = 0, columns = 0;  // the same where one dimension is resized: then the columns
  Layout layout = Layout::plain;
};

// Only floats and codes have another layout than the plain one.
std::optional<Placed> place(const ResizeTables& tables, bool is_float) {
  const std::size_t rank = tables.dimensions.size();
  std::size_t first = rank, last = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    if (!tables.dimensions[d].is_resized) continue;
    first = std::min(first, d);
    last = d;
  }
  if (first == rank) first = last = rank - 1;  // nothing is: any dimension will do
  if (is_float && rank == 4 && first >= 2) return Placed{2, 3, Layout::channels_last};
  if (is_float && rank == 3 && first == 2) return Placed{2, 2, Layout::channels_last};
  if (last - first > 1) return std::nullopt;
  return Placed{first, last, Layout::plain};
}

std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t size = 1;
  for (std::size_t d = begin; d < end; ++d) size *= shape[d];
  return size;
}

kernels::ResizeAxis axis_of(const ResizeTable& table, std::int64_t in) {
  kernels::ResizeAxis axis;
  axis.in = in;
  axis.taps = table.taps;
  axis.out = static_cast<std::int64_t>(table.at.size()) / axis.taps;
  axis.at = table.at.data();
  axis.weight = table.weight.data();
  return axis;
}

void set_geometry(ResizeStep& step, ResizeTables& tables, const Placed& placed, const Shape& shape) {
  step.columns = std::move(tables.dimensions[placed.columns]);
  step.resize.x = axis_of(step.columns, shape[placed.columns]);
  if (placed.rows == placed.columns) {
    step.rows.at = {0};
    step.rows.weight = {1.0};
    step.resize.y = axis_of(step.rows, 1);
  } else {
    step.rows = std::move(tables.dimensions[placed.rows]);
    step.resize.y = axis_of(step.rows, shape[placed.rows]);
  }
  const bool is_image = placed.layout == Layout::channels_last;
  step.resize.batch = is_image ? shape[0] : product(shape, 0, placed.rows);
  step.resize.channels = is_image ? shape[1] : product(shape, placed.columns + 1, shape.size());
}

}  // namespace

Result<bool> make_resize_steps(PlanBuilder& builder, graph::NodeId id) {
  const Node& node = builder.graph().node(id);
  if (node.op != Op::Resize) return false;
  const ValueId x = node.inputs[0], y = node.outputs[0];
  if (builder.shape(x).empty() || elements(builder.shape(y)) == 0) return false;
  CTK_TRY(ResizeTables tables, tables_of(builder, node));
  const std::optional<Placed> placed = place(tables, builder.info(x).dtype == DType::f32);
  if (!placed) return false;
  auto step = std::make_unique<ResizeStep>();
  set_geometry(*step, tables, *placed, builder.shape(x));
  step->is_codes = builder.has_note(x) && builder.has_note(y);
  step->moves = tables.is_nearest && (!step->is_codes || builder.note(x) == builder.note(y));
  if (step->is_codes) {
    const ActivationQuant &in = builder.note(x), &out = builder.note(y);
    step->codes = {in.scale, out.scale, in.zero_point, out.zero_point};
  }
  step->element_bytes = step->is_codes ? 1 : static_cast<std::size_t>(bits_of(builder.info(x).dtype)) / 8;
  step->kernel = &kernels::select(kernels::resize_rows(), builder.isas());
  step->label = step->moves ? "resize_nearest" : "resize_blend";
  step->row = step->kernel->name;
  const Form form = step->is_codes ? Form::codes : Form::native;
  CTK_TRY(const int from, builder.need(x, form, placed->layout));
  step->reads = {from};
  step->writes = {builder.define(y, form, placed->layout)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime
