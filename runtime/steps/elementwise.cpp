// Elementwise steps: Add and Mul of equal shapes, clamps, and unary operators on codes as 256-entry tables. They work
// in whatever layout their operands share.
#include "kernels/eltwise/eltwise.h"

#include <array>

#include "core/parallel.h"
#include "graph/ops/op.h"
#include "kernels/lookup/lookup.h"
#include "kernels/select.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

constexpr std::size_t kGrain = 16384;

class BinaryStep final : public Step {
 public:
  const kernels::EltwiseRow* kernel = nullptr;
  bool is_add = true, is_codes = false;
  kernels::AddU8 add;
  kernels::MulU8 mul;
  ClampRange clamp;
  std::size_t count = 0;

  Status run(const RunContext& context) override {
    parallel_for(count, kGrain, [&](std::size_t begin, std::size_t end) {
      const std::size_t n = end - begin;
      if (is_codes) {
        const auto* a = context.at<std::uint8_t>(reads[0]) + begin;
        const auto* b = context.at<std::uint8_t>(reads[1]) + begin;
        auto* y = context.at<std::uint8_t>(writes[0]) + begin;
        if (is_add)
          kernel->add_u8(add, a, b, y, n);
        else
          kernel->mul_u8(mul, a, b, y, n);
      } else {
        const auto* a = context.at<float>(reads[0]) + begin;
        const auto* b = context.at<float>(reads[1]) + begin;
        (is_add ? kernel->add_f32 : kernel->mul_f32)(a, b, clamp.low, clamp.high, context.at<float>(writes[0]) + begin,
                                                     n);
      }
    });
    return {};
  }
};

class ClampStep final : public Step {
 public:
  const kernels::EltwiseRow* kernel = nullptr;
  ClampRange clamp;
  std::size_t count = 0;

  Status run(const RunContext& context) override {
    parallel_for(count, kGrain, [&](std::size_t begin, std::size_t end) {
      kernel->clamp_f32(context.at<float>(reads[0]) + begin, clamp.low, clamp.high,
                        context.at<float>(writes[0]) + begin, end - begin);
    });
    return {};
  }
};

class LookupStep final : public Step {
 public:
  const kernels::LookupRow* kernel = nullptr;
  std::array<std::uint8_t, 256> table{};
  std::size_t count = 0;

  Status run(const RunContext& context) override {
    parallel_for(count, kGrain, [&](std::size_t begin, std::size_t end) {
      kernel->u8(table.data(), context.at<std::uint8_t>(reads[0]) + begin, context.at<std::uint8_t>(writes[0]) + begin,
                 end - begin);
    });
    return {};
  }
};

Result<bool> make_binary(PlanBuilder& builder, NodeId id) {
  const Node& node = builder.graph().node(id);
  const ValueId a = node.inputs[0], b = node.inputs[1];
  if (builder.shape(a) != builder.shape(b) || builder.info(a).dtype != DType::f32) return false;
  auto step = std::make_unique<BinaryStep>();
  ValueId y = node.outputs[0];
  const auto& readers = builder.graph().value(y).consumers;
  if (builder.is_sole_use(y) && !builder.has_note(y) && builder.graph().node(readers[0]).absorbed_by == id) {
    if (const auto clamp = clamp_of(builder.graph(), readers[0])) {
      step->clamp = *clamp;
      y = builder.graph().node(readers[0]).outputs[0];
      builder.mark_done(readers[0]);
    }
  }
  step->is_add = node.op == Op::Add;
  step->is_codes = builder.has_note(a) && builder.has_note(b) && builder.has_note(y);
  if (step->is_codes) {
    const ActivationQuant& qa = builder.note(a);
    const ActivationQuant& qb = builder.note(b);
    const ActivationQuant& qy = builder.note(y);
    const CodeClamp codes = code_clamp(step->clamp, qy);
    step->add = {qa.zero_point,       qb.zero_point, qy.zero_point, qa.scale / qy.scale,
                 qb.scale / qy.scale, codes.low,     codes.high};
    const double ratio = static_cast<double>(qa.scale) * static_cast<double>(qb.scale) / static_cast<double>(qy.scale);
    step->mul = {qa.zero_point, qb.zero_point, qy.zero_point, static_cast<float>(ratio), codes.low, codes.high};
  }
  const Form form = step->is_codes ? Form::codes : Form::native;
  // Channels-last is what image layers hand over; values of other ranks have one layout only.
  const bool is_image = builder.shape(a).size() == 3 || builder.shape(a).size() == 4;
  const Layout layout = is_image ? Layout::channels_last : Layout::plain;
  CTK_TRY(const int left, builder.need(a, form, layout));
  CTK_TRY(const int right, builder.need(b, form, layout));
  step->kernel = &kernels::select(kernels::eltwise_rows(), builder.isas());
  step->count = elements(builder.shape(a));
  step->label = std::string(step->is_add ? "add" : "mul") + (step->is_codes ? "_u8" : "_f32");
  step->row = step->kernel->name;
  step->reads = {left, right};
  step->writes = {builder.define(y, form, layout)};
  builder.add_step(std::move(step), id);
  return true;
}

// The operator applied to all 256 real values its input can take, rounded by the output's note.
Result<std::array<std::uint8_t, 256>> table_of(const PlanBuilder& builder, const Node& node) {
  std::array<float, 256> in{}, out{};
  for (int code = 0; code < 256; ++code) {
    in[static_cast<std::size_t>(code)] = dequantize(static_cast<std::uint8_t>(code), builder.note(node.inputs[0]));
  }
  std::vector<TensorView> inputs(node.inputs.size());
  inputs[0] = {DType::f32, {256}, in.data()};
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].is_valid()) continue;
    const auto& constant = builder.info(node.inputs[i]).constant;
    const auto& held = builder.graph().value(node.inputs[i]).constant;
    inputs[i] = constant ? constant->view() : held->view();
  }
  const MutableTensorView output{DType::f32, {256}, out.data()};
  CTK_CHECK(graph::rules_of(node.op).evaluate(node, inputs, std::span(&output, 1)));
  std::array<std::uint8_t, 256> table{};
  for (std::size_t i = 0; i < 256; ++i) table[i] = quantize(out[i], builder.note(node.outputs[0]));
  return table;
}

Result<bool> make_unary(PlanBuilder& builder, NodeId id) {
  const Node& node = builder.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i].is_valid() && !builder.graph().value(node.inputs[i]).is_constant()) return false;
  }
  const std::size_t count = elements(builder.shape(x));
  if (builder.has_note(x) && builder.has_note(y)) {
    auto step = std::make_unique<LookupStep>();
    CTK_TRY(step->table, table_of(builder, node));
    CTK_TRY(const int from, builder.need(x, Form::codes, Layout::any));
    const Layout layout = builder.layout_of(x, Form::codes, from);
    step->kernel = &kernels::select(kernels::lookup_rows(), builder.isas());
    step->count = count;
    step->label = "lookup";
    step->row = step->kernel->name;
    step->reads = {from};
    step->writes = {builder.define(y, Form::codes, layout)};
    builder.add_step(std::move(step), id);
    return true;
  }
  const auto clamp = clamp_of(builder.graph(), id);
  if (!clamp || builder.info(x).dtype != DType::f32) return false;
  CTK_TRY(const int from, builder.need(x, Form::native, Layout::any));
  const Layout layout = builder.layout_of(x, Form::native, from);
  auto step = std::make_unique<ClampStep>();
  step->kernel = &kernels::select(kernels::eltwise_rows(), builder.isas());
  step->clamp = *clamp;
  step->count = count;
  step->label = "clamp_f32";
  step->row = step->kernel->name;
  step->reads = {from};
  step->writes = {builder.define(y, Form::native, layout)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace

Result<bool> make_elementwise_steps(PlanBuilder& builder, NodeId id) {
  const Node& node = builder.graph().node(id);
  if (node.op == Op::Add || node.op == Op::Mul) return make_binary(builder, id);
  if (node.op != Op::unknown && graph::rules_of(node.op).kind == graph::OpKind::unary) return make_unary(builder, id);
  return false;
}

}  // namespace ctk::runtime
