#include "runtime/plan_builder.h"

#include <algorithm>

#include "core/printable.h"
#include "graph/floats.h"
#include "graph/ops/op.h"

namespace ctk::runtime {

using graph::Graph;
using graph::InferredValue;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

ImageExtent image_extent(const Shape& shape) {
  ImageExtent extent;
  if (shape.size() < 3) return extent;
  extent.batch = static_cast<std::size_t>(shape[0]);
  extent.channels = static_cast<std::size_t>(shape[1]);
  for (std::size_t d = 2; d < shape.size(); ++d) extent.pixels *= static_cast<std::size_t>(shape[d]);
  return extent;
}

std::optional<ClampRange> clamp_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  ClampRange range;
  if (node.op == Op::Relu) {
    range.low = 0.0f;
    return range;
  }
  if (node.op != Op::Clip) return std::nullopt;
  for (std::size_t i = 1; i < node.inputs.size() && i < 3; ++i) {
    if (!node.inputs[i].is_valid()) continue;
    const auto& bound = graph.value(node.inputs[i]).constant;
    if (!bound || bound->dtype() != DType::f32 || bound->size() != 1) return std::nullopt;
    (i == 1 ? range.low : range.high) = bound->values<float>()[0];
  }
  if (range.low > range.high) range.low = range.high;  // ONNX: max wins, everywhere
  return range;
}

CodeClamp code_clamp(const ClampRange& range, const ActivationQuant& q) {
  return {quantize(range.low, q), quantize(range.high, q)};
}

PlanBuilder::PlanBuilder(const Graph& graph, const PlanOptions& options, std::vector<InferredValue> infos,
                         std::vector<Isa> isas)
    : graph_(graph),
      options_(options),
      infos_(std::move(infos)),
      isas_(std::move(isas)),
      versions_(graph.value_capacity()),
      is_done_(graph.node_capacity(), false) {}

bool PlanBuilder::is_kept(ValueId id) const {
  return std::find(options_.keep.begin(), options_.keep.end(), id) != options_.keep.end();
}

bool PlanBuilder::is_internal(ValueId id) const {
  return options_.fuse && is_sole_use(id);
}

bool PlanBuilder::is_sole_use(ValueId id) const {
  return graph_.value(id).consumers.size() == 1 && !is_kept(id) && !graph_.is_output(id);
}

bool PlanBuilder::layouts_coincide(ValueId id) const {
  const Shape& s = shape(id);
  if (s.size() < 3 || s.size() > 4) return true;  // other ranks have the plain layout only
  const ImageExtent extent = image_extent(s);
  return extent.channels == 1 || extent.pixels == 1;
}

std::optional<int> PlanBuilder::find(ValueId id, Form form, Layout layout) const {
  const bool is_free = layout == Layout::any || layouts_coincide(id);
  for (const Version& version : versions_[id.index]) {
    if (version.form == form && !version.is_raw && (is_free || version.layout == layout)) return version.slot;
  }
  return std::nullopt;
}

std::optional<PlanBuilder::Version> PlanBuilder::find_raw(ValueId id) const {
  for (const Version& version : versions_[id.index]) {
    if (version.is_raw) return version;
  }
  return std::nullopt;
}

Layout PlanBuilder::layout_of(ValueId id, Form form, int slot) const {
  for (const Version& version : versions_[id.index]) {
    if (version.form == form && version.slot == slot) return layouts_coincide(id) ? Layout::plain : version.layout;
  }
  return Layout::plain;
}

int PlanBuilder::add_slot(std::size_t bytes) {
  plan_.slots.push_back({bytes, false, -1, {}});
  return static_cast<int>(plan_.slots.size()) - 1;
}

int PlanBuilder::add_constant_slot(Tensor tensor) {
  plan_.slots.push_back({tensor.bytes(), true, -1, std::move(tensor)});
  return static_cast<int>(plan_.slots.size()) - 1;
}

int PlanBuilder::define(ValueId id, Form form, Layout layout) {
  const DType dtype = form == Form::codes ? DType::u8 : info(id).dtype;
  const int slot = add_slot(byte_size(dtype, elements(shape(id))));
  define_alias(id, form, layout, slot);
  return slot;
}

void PlanBuilder::define_alias(ValueId id, Form form, Layout layout, int slot) {
  versions_[id.index].push_back({id, form, layout, slot, form == Form::native && has_note(id)});
}

int PlanBuilder::define_clean(ValueId id, Form form, Layout layout) {
  const int slot = define(id, form, layout);
  versions_[id.index].back().is_raw = false;
  return slot;
}

void PlanBuilder::add_step(std::unique_ptr<Step> step, NodeId node) {
  step->node = node;
  plan_.scratch_bytes = std::max(plan_.scratch_bytes, step->scratch_bytes);
  plan_.packed_bytes += step->packed_bytes;
  plan_.steps.push_back(std::move(step));
}

Status PlanBuilder::define_constant(ValueId id) {
  const graph::Value& value = graph_.value(id);
  std::optional<Tensor> constant = graph::is_narrow(value) ? graph::floats_of(value) : value.constant;
  if (value.quantized != nullptr) constant = dequantize(*value.quantized);
  if (!constant && infos_[id.index].known) constant = info(id).constant;
  if (!constant) return internal_error("\"" + value.name + "\" is read before any step computes it");
  if (constant->dtype() != info(id).dtype) {
    CTK_TRY(constant, cast(*constant, info(id).dtype));
  }
  define_alias(id, Form::native, Layout::plain, add_constant_slot(std::move(*constant)));
  return {};
}

Result<int> PlanBuilder::need(ValueId id, Form form, Layout layout) {
  if (const auto slot = find(id, form, layout)) return *slot;
  if (form == Form::codes && !has_note(id)) {
    return internal_error("\"" + graph_.value(id).name + "\": codes were asked of a value without quantization note");
  }
  if (versions_[id.index].empty()) {
    CTK_CHECK(define_constant(id));
    return need(id, form, layout);
  }
  // First the form in whatever layout is at hand, then the layout: codes are a quarter of the bytes to move.
  if (const auto other = find(id, form, Layout::any)) {
    const int to = define_clean(id, form, layout);
    add_step(make_layout_step(*this, id, form, layout, *other, to), {});
    return to;
  }
  if (form == Form::codes) {
    const auto raw = find_raw(id);
    if (!raw) return internal_error("\"" + graph_.value(id).name + "\" has neither codes nor floats");
    const int to = define_clean(id, Form::codes, raw->layout);
    add_step(make_quantize_step(*this, id, raw->slot, to), {});
  } else {
    CTK_TRY(const int codes, need(id, Form::codes, Layout::any));
    Layout at_hand = Layout::plain;
    for (const Version& version : versions_[id.index]) {
      if (version.slot == codes) at_hand = version.layout;
    }
    const int to = define_clean(id, Form::native, at_hand);
    add_step(make_dequantize_step(*this, id, codes, to), {});
  }
  return need(id, form, layout);
}

Status PlanBuilder::add_node_steps(NodeId id) {
  const Node& node = graph_.node(id);
  const auto is_known = [&](ValueId output) {
    return !output.is_valid() || (infos_[output.index].known && info(output).constant.has_value());
  };
  if (std::all_of(node.outputs.begin(), node.outputs.end(), is_known)) return {};  // need() makes it a constant
  if (node.op == Op::unknown) {
    return input_error(printable(graph_.address(id)) + ": operator \"" +
                       (node.domain.empty() ? "" : node.domain + "::") + node.op_type +
                       "\" is not supported, so the graph cannot be run. See: compress list ops");
  }
  for (auto* maker : {&make_layer_steps, &make_pool_steps, &make_resize_steps, &make_gated_steps,
                      &make_elementwise_steps, &make_embedding_steps, &make_movement_steps, &make_normalization_steps,
                      &make_rotary_steps, &make_attention_steps, &make_reference_steps}) {
    auto made = maker(*this, id);
    if (!made) return std::move(made).error().with_context(printable(graph_.address(id)) + " (" + node.op_type + ")");
    if (*made) return {};
  }
  return internal_error(printable(graph_.address(id)) + " (" + node.op_type + "): no step maker took this node");
}

Status PlanBuilder::keep_values(std::span<const ValueId> values) {
  for (ValueId id : values) {
    if (!id.is_valid() || !is_kept(id) || versions_[id.index].empty()) continue;
    CTK_TRY(const int slot, need(id, Form::native, Layout::any));
    KeptValue kept{id, slot, shape(id), false, plan_.steps.empty() ? 0 : plan_.steps.size() - 1};
    for (const Version& version : versions_[id.index]) {
      if (version.slot == slot && version.layout == Layout::channels_last && !layouts_coincide(id)) {
        kept.channels_last = true;
        std::rotate(kept.shape.begin() + 1, kept.shape.begin() + 2, kept.shape.end());
      }
    }
    plan_.kept.push_back(std::move(kept));
  }
  return {};
}

Status PlanBuilder::finish_outputs() {
  for (ValueId id : graph_.outputs()) {
    // A graph input that is an output too leaves as it came: only its readers see it rounded.
    const bool is_input = std::find(graph_.inputs().begin(), graph_.inputs().end(), id) != graph_.inputs().end();
    const auto given = is_input ? find_raw(id) : std::nullopt;
    int slot = given ? given->slot : 0;
    if (!given) {
      CTK_TRY(slot, need(id, Form::native, Layout::plain));
    }
    plan_.output_slots.push_back(slot);
    plan_.output_dtypes.push_back(info(id).dtype);
    plan_.output_shapes.push_back(shape(id));
  }
  return {};
}

void PlanBuilder::assign_memory() {
  const std::size_t last_step = plan_.steps.empty() ? 0 : plan_.steps.size() - 1;
  const auto root = [&](int slot) {
    while (plan_.slots[static_cast<std::size_t>(slot)].alias_of >= 0)
      slot = plan_.slots[static_cast<std::size_t>(slot)].alias_of;
    return static_cast<std::size_t>(slot);
  };
  std::vector<Lifetime> lives(plan_.slots.size());
  std::vector<bool> is_seen(plan_.slots.size(), false);
  const auto touch = [&](int slot, std::size_t step) {
    Lifetime& life = lives[root(slot)];
    if (!is_seen[root(slot)]) life.first = step;
    is_seen[root(slot)] = true;
    life.last = std::max(life.last, step);
  };
  for (int slot : plan_.input_slots) touch(slot, 0);
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    for (int slot : plan_.steps[s]->reads) touch(slot, s);
    for (int slot : plan_.steps[s]->writes) touch(slot, s);
  }
  for (int slot : plan_.output_slots) touch(slot, last_step);
  for (const KeptValue& kept : plan_.kept) touch(kept.slot, kept.after_step);
  std::vector<Lifetime> packed;
  std::vector<std::size_t> packed_slots;
  for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
    if (plan_.slots[i].is_constant || plan_.slots[i].alias_of >= 0 || !is_seen[i]) continue;
    lives[i].bytes = plan_.slots[i].bytes;
    packed.push_back(lives[i]);
    packed_slots.push_back(i);
  }
  plan_.memory = plan_memory(packed);
  plan_.slot_offsets.assign(plan_.slots.size(), 0);
  for (std::size_t i = 0; i < packed.size(); ++i) plan_.slot_offsets[packed_slots[i]] = plan_.memory.offsets[i];
}

Result<Plan> PlanBuilder::build() {
  for (ValueId id : graph_.inputs()) plan_.input_slots.push_back(define(id, Form::native, Layout::plain));
  CTK_CHECK(keep_values(graph_.inputs()));
  for (NodeId id : graph_.order()) {
    if (is_done(id)) {
      CTK_CHECK(keep_values(graph_.node(id).outputs));
      continue;
    }
    CTK_CHECK(add_node_steps(id));
    mark_done(id);
    CTK_CHECK(keep_values(graph_.node(id).outputs));
  }
  CTK_CHECK(finish_outputs());
  assign_memory();
  return std::move(plan_);
}

Result<Plan> make_plan(const Graph& graph, const PlanOptions& options) {
  CTK_CHECK(graph::check_input_shapes(graph, options.input_shapes));
  CTK_TRY(std::vector<InferredValue> infos, graph::infer_shapes(graph, options.input_shapes));
  CTK_TRY(std::vector<Isa> isas, allowed_isas());
  return PlanBuilder(graph, options, std::move(infos), std::move(isas)).build();
}

}  // namespace ctk::runtime
