// Data movement (Reshape, Transpose, Slice, Pad, Concat, Split, Gather, ...) as runs of bytes to copy. The operator is
// evaluated once, while planning, on element numbers instead of data; what comes out says where each output element
// comes from. Layouts of inputs and outputs are folded into the same table, so no separate transposes are needed.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/parallel.h"
#include "graph/ops/op.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

constexpr std::size_t kMaxElements = std::size_t{1} << 26;  // the table holds int32 element numbers

struct Run {
  std::int32_t input = 0;                     // which read; -1: fill
  std::uint32_t from = 0, to = 0, count = 0;  // elements
};

class MovementStep final : public Step {
 public:
  std::vector<std::vector<Run>> runs;  // per output
  std::size_t element_bytes = 1;
  std::uint64_t fill = 0;  // bit pattern of one element

  Status run(const RunContext& context) override {
    for (std::size_t o = 0; o < runs.size(); ++o) {
      auto* y = context.at<std::byte>(writes[o]);
      const std::vector<Run>& list = runs[o];
      parallel_for(list.size(), 256, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) copy(context, list[i], y);
      });
    }
    return {};
  }

 private:
  void copy(const RunContext& context, const Run& part, std::byte* y) const {
    std::byte* to = y + part.to * element_bytes;
    if (part.input >= 0) {
      const auto* x = context.at<std::byte>(reads[static_cast<std::size_t>(part.input)]);
      std::memcpy(to, x + part.from * element_bytes, part.count * element_bytes);
    } else if (element_bytes == 1) {
      std::memset(to, static_cast<int>(fill & 0xff), part.count);
    } else {
      for (std::size_t i = 0; i < part.count; ++i) std::memcpy(to + i * element_bytes, &fill, element_bytes);
    }
  }
};

// storage position -> ONNX-order position for a channels-last value.
std::vector<std::int32_t> storage_order(const Shape& shape, bool channels_last) {
  std::vector<std::int32_t> order(elements(shape));
  std::iota(order.begin(), order.end(), 0);
  if (!channels_last) return order;
  const ImageExtent e = image_extent(shape);
  std::size_t at = 0;
  for (std::size_t b = 0; b < e.batch; ++b) {
    for (std::size_t p = 0; p < e.pixels; ++p) {
      for (std::size_t c = 0; c < e.channels; ++c)
        order[at++] = static_cast<std::int32_t>((b * e.channels + c) * e.pixels + p);
    }
  }
  return order;
}

// Positions, in the concatenated element numbering of all moved inputs, that each output element (ONNX order) takes.
struct Moved {
  std::vector<std::size_t> inputs;              // node input indices that carry data
  std::vector<std::int32_t> base;               // first number of each
  std::vector<std::vector<std::int32_t>> from;  // per output; -1: fill
};

bool is_data_input(const Node& node, std::size_t index) {
  return node.op == Op::Concat || index == 0;
}

Result<Moved> trace(const PlanBuilder& builder, const Node& node) {
  Moved moved;
  std::vector<TensorView> inputs(node.inputs.size());
  std::vector<std::vector<std::int32_t>> numbers(node.inputs.size());
  std::vector<Tensor> held(node.inputs.size());
  const std::int32_t minus_one = -1;
  std::size_t next = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (node.op == Op::Pad && i == 2) {  // the fill value: stands for "no element"
      inputs[i] = {DType::i32, {}, &minus_one};
      continue;
    }
    if (!id.is_valid()) continue;
    if (is_data_input(node, i)) {
      numbers[i].resize(elements(builder.shape(id)));
      std::iota(numbers[i].begin(), numbers[i].end(), static_cast<std::int32_t>(next));
      moved.inputs.push_back(i);
      moved.base.push_back(static_cast<std::int32_t>(next));
      next += numbers[i].size();
      inputs[i] = {DType::i32, builder.shape(id), numbers[i].data()};
    } else {
      held[i] = builder.graph().value(id).constant ? *builder.graph().value(id).constant : *builder.info(id).constant;
      inputs[i] = held[i].view();
    }
  }
  Node traced = node;
  if (node.op == Op::Pad && inputs.size() == 2) inputs.push_back({DType::i32, {}, &minus_one});
  std::vector<MutableTensorView> outputs;
  for (ValueId output : node.outputs) {
    if (!output.is_valid()) continue;
    auto& from = moved.from.emplace_back(elements(builder.shape(output)));
    outputs.push_back({DType::i32, builder.shape(output), from.data()});
  }
  CTK_CHECK(graph::rules_of(node.op).evaluate(traced, inputs, outputs));
  return moved;
}

// Joins neighbouring elements that come from neighbouring places.
std::vector<Run> to_runs(const Moved& moved, const std::vector<std::int32_t>& from,
                         const std::vector<std::int32_t>& out_order,
                         const std::vector<std::vector<std::int32_t>>& in_place) {
  std::vector<Run> runs;
  for (std::size_t at = 0; at < out_order.size(); ++at) {
    const std::int32_t number = from[static_cast<std::size_t>(out_order[at])];
    Run run{-1, 0, static_cast<std::uint32_t>(at), 1};
    if (number >= 0) {
      const auto next = std::upper_bound(moved.base.begin(), moved.base.end(), number);
      run.input = static_cast<std::int32_t>(next - moved.base.begin()) - 1;
      const auto which = static_cast<std::size_t>(run.input);
      run.from = static_cast<std::uint32_t>(in_place[which][static_cast<std::size_t>(number - moved.base[which])]);
    }
    if (!runs.empty()) {
      Run& last = runs.back();
      const bool continues = last.input == run.input && (run.input < 0 || last.from + last.count == run.from);
      if (continues) {
        ++last.count;
        continue;
      }
    }
    runs.push_back(run);
  }
  return runs;
}

// True when the node can be traced: all control inputs known, data small enough to number, dtype of whole bytes.
bool is_traceable(const PlanBuilder& builder, const Node& node) {
  if (node.op == Op::unknown || graph::rules_of(node.op).kind != graph::OpKind::data_movement) return false;
  std::size_t total = 0;
  const DType dtype = builder.info(node.inputs[0]).dtype;
  if (bits_of(dtype) < 8) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].is_valid()) continue;
    if (is_data_input(node, i)) {
      total += elements(builder.shape(node.inputs[i]));
    } else if (!builder.graph().value(node.inputs[i]).constant && !builder.info(node.inputs[i]).constant) {
      return false;
    }
  }
  for (ValueId output : node.outputs) {
    if (!output.is_valid()) return false;
    if (builder.info(output).dtype != dtype) return false;
    total += elements(builder.shape(output));
  }
  return total <= kMaxElements;
}

// Codes are moved as codes when every data input and output bears the same note; otherwise the float form is moved.
Form common_form(const PlanBuilder& builder, const Node& node, const Moved& moved) {
  const ValueId first = node.inputs[moved.inputs.front()];
  if (!builder.has_note(first)) return Form::native;
  for (std::size_t index : moved.inputs) {
    const ValueId id = node.inputs[index];
    if (!builder.has_note(id) || !(builder.note(id) == builder.note(first))) return Form::native;
  }
  for (ValueId output : node.outputs) {
    if (!builder.has_note(output) || !(builder.note(output) == builder.note(first))) return Form::native;
  }
  return Form::codes;
}

std::uint64_t fill_pattern(const PlanBuilder& builder, const Node& node, Form form) {
  if (form == Form::codes) {
    float real = 0.0f;
    if (node.op == Op::Pad && node.inputs.size() > 2 && node.inputs[2].is_valid()) {
      const auto& value = builder.info(node.inputs[2]).constant;
      const auto& held = builder.graph().value(node.inputs[2]).constant;
      real = (value ? *value : *held).values<float>()[0];
    }
    return quantize(real, builder.note(node.inputs[0]));
  }
  std::uint64_t pattern = 0;
  if (node.op == Op::Pad && node.inputs.size() > 2 && node.inputs[2].is_valid()) {
    const auto& value = builder.info(node.inputs[2]).constant;
    const Tensor held = value ? *value : *builder.graph().value(node.inputs[2]).constant;
    std::memcpy(&pattern, held.data(), std::min<std::size_t>(8, held.bytes()));
  }
  return pattern;
}

}  // namespace

Result<bool> make_movement_steps(PlanBuilder& builder, NodeId id) {
  const Node& node = builder.graph().node(id);
  if (!is_traceable(builder, node)) return false;
  CTK_TRY(const Moved moved, trace(builder, node));
  const Form form = common_form(builder, node, moved);
  auto step = std::make_unique<MovementStep>();
  std::vector<std::vector<std::int32_t>> in_place;
  bool has_image_layout = false;
  for (std::size_t index : moved.inputs) {
    const ValueId input = node.inputs[index];
    CTK_TRY(const int slot, builder.need(input, form, Layout::any));
    const bool is_last = builder.layout_of(input, form, slot) == Layout::channels_last;
    has_image_layout = has_image_layout || is_last;
    const std::vector<std::int32_t> order = storage_order(builder.shape(input), is_last);
    std::vector<std::int32_t> place(order.size());
    for (std::size_t at = 0; at < order.size(); ++at)
      place[static_cast<std::size_t>(order[at])] = static_cast<std::int32_t>(at);
    in_place.push_back(std::move(place));
    step->reads.push_back(slot);
  }
  std::size_t which = 0;
  bool is_plain_copy = true;
  for (ValueId output : node.outputs) {
    const std::size_t rank = builder.shape(output).size();
    const bool is_last = has_image_layout && (rank == 3 || rank == 4);
    const Layout layout = is_last ? Layout::channels_last : Layout::plain;
    step->runs.push_back(to_runs(moved, moved.from[which++], storage_order(builder.shape(output), is_last), in_place));
    const std::vector<Run>& runs = step->runs.back();
    const bool is_copy = node.outputs.size() == 1 && moved.inputs.size() == 1 && runs.size() == 1 &&
                         runs[0].input == 0 && runs[0].from == 0 &&
                         elements(builder.shape(output)) == elements(builder.shape(node.inputs[0]));
    if (is_copy) {
      builder.define_alias(output, form, layout, step->reads[0]);
    } else {
      is_plain_copy = false;
      step->writes.push_back(builder.define(output, form, layout));
    }
  }
  if (is_plain_copy) return true;  // the same bytes under another shape: no step at all
  step->label = "move";
  step->element_bytes =
      form == Form::codes ? 1 : static_cast<std::size_t>(bits_of(builder.info(node.inputs[0]).dtype)) / 8;
  step->fill = fill_pattern(builder, node, form);
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime
