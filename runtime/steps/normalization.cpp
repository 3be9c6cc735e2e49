// RMSNormalization, LayerNormalization and Softmax along the last axis by the kernels `norm` and `softmax`, whose bits
// are those of the operators' own evaluation.
#include "kernels/norm/norm.h"
#include "kernels/select.h"
#include "kernels/softmax/softmax.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::Op;

class NormalizationStep final : public Step {
 public:
  const kernels::NormRow* kernel = nullptr;
  kernels::Norm norm;
  std::size_t rows = 0;
  bool centres = false;  // LayerNormalization

  Status run(const RunContext& context) override {
    kernels::Norm now = norm;
    now.scale = context.at<const float>(reads[1]);
    now.shift = reads.size() > 2 ? context.at<const float>(reads[2]) : nullptr;
    kernels::normalize(*kernel, now, centres, context.at<const float>(reads[0]), context.at<float>(writes[0]), rows);
    return {};
  }
};

class SoftmaxStep final : public Step {
 public:
  const kernels::SoftmaxRow* kernel = nullptr;
  std::size_t rows = 0, count = 0;

  Status run(const RunContext& context) override {
    kernels::softmax(*kernel, context.at<const float>(reads[0]), context.at<float>(writes[0]), rows, count);
    return {};
  }
};

Result<bool> make_softmax_steps(PlanBuilder& builder, graph::NodeId id) {
  const Node& node = builder.graph().node(id);
  const Shape& shape = builder.shape(node.inputs[0]);
  const std::int64_t axis = node.attributes.get_int("axis", -1);
  if (axis != -1 && axis != static_cast<std::int64_t>(shape.size()) - 1) return false;
  if (shape.empty() || elements(shape) == 0) return false;
  auto step = std::make_unique<SoftmaxStep>();
  step->kernel = &kernels::select(kernels::softmax_rows(), builder.isas());
  step->label = "softmax";
  step->row = step->kernel->name;
  step->count = static_cast<std::size_t>(shape.back());
  step->rows = elements(shape) / step->count;
  CTK_TRY(const int slot, builder.need(node.inputs[0], Form::native, Layout::plain));
  step->reads = {slot};
  step->writes = {builder.define(node.outputs[0], Form::native, Layout::plain)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace

Result<bool> make_normalization_steps(PlanBuilder& builder, graph::NodeId id) {
  const Node& node = builder.graph().node(id);
  if (node.op == Op::Softmax) return make_softmax_steps(builder, id);
  const bool centres = node.op == Op::LayerNormalization;
  if ((node.op != Op::RMSNormalization && !centres) || node.outputs.size() > 1) return false;
  const Shape& shape = builder.shape(node.inputs[0]);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t axis = node.attributes.get_int("axis", -1);
  const bool is_last = axis == -1 || axis == rank - 1;
  const bool has_shift = node.inputs.size() > 2 && node.inputs[2].is_valid();
  const Shape row{shape.empty() ? 0 : shape.back()};
  if (!is_last || elements(shape) == 0 || builder.shape(node.inputs[1]) != row) return false;
  if (has_shift && builder.shape(node.inputs[2]) != row) return false;
  auto step = std::make_unique<NormalizationStep>();
  step->kernel = &kernels::select(kernels::norm_rows(), builder.isas());
  step->row = step->kernel->name;
  step->norm.count = static_cast<std::size_t>(shape.back());
  step->norm.epsilon = node.attributes.get_float("epsilon", 1e-5f);
  step->rows = elements(shape) / step->norm.count;
  step->centres = centres;
  step->label = centres ? "layer_normalization" : "rms_normalization";
  for (std::size_t i = 0; i < (has_shift ? 3u : 2u); ++i) {
    CTK_TRY(const int slot, builder.need(node.inputs[i], Form::native, Layout::plain));
    step->reads.push_back(slot);
  }
  step->writes = {builder.define(node.outputs[0], Form::native, Layout::plain)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime
