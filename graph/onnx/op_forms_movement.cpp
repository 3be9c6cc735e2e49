// Older forms of Pad, Slice, Softmax and Split.
#include <algorithm>

#include "graph/onnx/op_forms.h"

namespace ctk::graph::onnx {

Status normalize_pad(FormContext& c, NodeId id) {
  if (c.opset >= 11) return {};
  if (c.graph.node(id).inputs.size() > 1) {
    return c.error(id, "expected 1 input at opset " + std::to_string(c.opset) + ", found " +
                           std::to_string(c.graph.node(id).inputs.size()));
  }
  if (c.graph.node(id).attributes.find("pads") == nullptr) return c.error(id, "attribute \"pads\" is missing");
  c.graph.set_input(id, 1, c.add_ints(id, "pads", c.graph.node(id).attributes.get_ints("pads")));
  if (c.graph.node(id).attributes.find("value") != nullptr) {
    const DType dtype = c.graph.value(c.input(id, 0)).dtype;
    const float value = c.graph.node(id).attributes.get_float("value", 0.0f);
    CTK_TRY(Tensor fill, cast(Tensor::scalar<float>(value), is_float(dtype) ? dtype : DType::f32));
    c.graph.set_input(id, 2, c.graph.add_constant(c.new_name(c.graph.address(id) + "_value"), std::move(fill)));
  }
  c.graph.node(id).attributes.erase("pads");
  c.graph.node(id).attributes.erase("value");
  return {};
}

namespace {

// Pads of some axes -> pads of all axes, since older opsets have no axes input.
Status spread_pads(FormContext& c, NodeId id) {
  const auto pads = c.known_ints(id, 1);
  const auto axes = c.known_ints(id, 3);
  const auto rank = c.known_rank(id);
  if (!pads || !axes || !rank) return c.needs(id, 18, "Pad with axes that are computed or of unknown rank");
  if (pads->size() != 2 * axes->size()) return c.error(id, "expected two pads an axis");
  std::vector<std::int64_t> all(static_cast<std::size_t>(2 * *rank), 0);
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const std::int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + *rank : (*axes)[i];
    if (axis < 0 || axis >= *rank) return c.error(id, "axis " + std::to_string((*axes)[i]) + " is out of range");
    all[static_cast<std::size_t>(axis)] = (*pads)[i];
    all[static_cast<std::size_t>(axis + *rank)] = (*pads)[i + axes->size()];
  }
  c.orphans.insert(c.input(id, 1));
  c.graph.set_input(id, 1, c.add_ints(id, "pads", all));
  return {};
}

}  // namespace

Status lower_pad(FormContext& c, NodeId id) {
  if (c.opset < 19 && c.graph.node(id).attributes.get_string("mode", "constant") == "wrap") {
    return c.needs(id, 19, "Pad with mode \"wrap\"");
  }
  if (c.opset < 18) {
    if (c.input(id, 3).is_valid()) CTK_CHECK(spread_pads(c, id));
    c.drop_inputs_from(id, 3);
  }
  if (c.opset >= 11) return {};
  const auto pads = c.known_ints(id, 1);
  if (!pads) return c.needs(id, 11, "Pad with computed pads");
  if (c.input(id, 2).is_valid()) {
    const auto fill = c.known_scalar(id, 2);
    if (!fill) return c.needs(id, 11, "Pad with a computed value");
    c.graph.node(id).attributes.set("value", *fill);
  }
  c.graph.node(id).attributes.set("pads", *pads);
  c.drop_inputs_from(id, 1);
  return {};
}

Status normalize_slice(FormContext& c, NodeId id) {
  if (c.opset >= 10) return {};
  Node& node = c.graph.node(id);
  if (node.inputs.size() > 1)
    return c.error(id, "expected 1 input at opset 9, found " + std::to_string(node.inputs.size()));
  const auto starts = node.attributes.get_ints("starts");
  const auto ends = node.attributes.get_ints("ends");
  const auto axes = node.attributes.get_ints("axes");
  if (starts.empty() || starts.size() != ends.size() || (!axes.empty() && axes.size() != starts.size())) {
    return c.error(id, "expected starts, ends and axes of one length, found " + std::to_string(starts.size()) + ", " +
                           std::to_string(ends.size()) + " and " + std::to_string(axes.size()));
  }
  for (const char* name : {"starts", "ends", "axes"}) node.attributes.erase(name);
  c.graph.set_input(id, 1, c.add_ints(id, "starts", starts));
  c.graph.set_input(id, 2, c.add_ints(id, "ends", ends));
  if (!axes.empty()) c.graph.set_input(id, 3, c.add_ints(id, "axes", axes));
  return {};
}

Status lower_slice(FormContext& c, NodeId id) {
  if (c.opset >= 10) return {};
  const char* const names[] = {"starts", "ends", "axes"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!c.input(id, i + 1).is_valid()) continue;
    const auto values = c.known_ints(id, i + 1);
    if (!values) return c.needs(id, 10, "Slice with computed " + std::string(names[i]));
    c.graph.node(id).attributes.set(names[i], *values);
  }
  if (c.input(id, 4).is_valid()) {
    const auto steps = c.known_ints(id, 4);
    if (!steps || std::any_of(steps->begin(), steps->end(), [](std::int64_t step) { return step != 1; })) {
      return c.needs(id, 10, "Slice with steps");
    }
  }
  c.drop_inputs_from(id, 1);
  return {};
}

// Before opset 13 Softmax flattens to two dimensions at `axis` and runs over
// all of the second.
Status normalize_softmax(FormContext& c, NodeId id) {
  if (c.opset >= 13) return {};
  const std::int64_t axis = c.graph.node(id).attributes.get_int("axis", 1);
  const ValueId x = c.input(id, 0);
  if (!x.is_valid() || c.graph.node(id).outputs.size() != 1 || !c.graph.node(id).outputs[0].is_valid()) {
    return c.error(id, "expected one input and one output");
  }
  const ValueId y = c.graph.node(id).outputs[0];
  auto rank = c.known_rank(id);
  if (!rank && c.graph.value(y).shape) rank = static_cast<std::int64_t>(c.graph.value(y).shape->size());
  if (axis == -1 || (rank && axis == *rank - 1)) {
    c.graph.node(id).attributes.set("axis", axis);
    return {};
  }
  const DType dtype = c.graph.value(x).dtype;
  const std::string base = c.graph.address(id);
  const ValueId shape = c.graph.add_value(c.new_name(base + "_shape"), DType::i64);
  const ValueId flat = c.graph.add_value(c.new_name(base + "_flat"), dtype);
  const ValueId share = c.graph.add_value(c.new_name(base + "_share"), dtype);
  const auto add = [&](const char* op, std::vector<ValueId> inputs, ValueId output, NodeId before) {
    Node node;
    node.name = c.new_name(base + "_" + op);
    node.op_type = op;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    return c.graph.add_node(std::move(node), before);
  };
  add("Shape", {x}, shape, id);
  const NodeId flatten = add("Flatten", {x}, flat, id);
  c.graph.node(flatten).attributes.set("axis", axis);
  c.graph.set_input(id, 0, flat);
  c.graph.node(id).outputs[0] = share;
  c.graph.value(share).producer = id;
  c.graph.node(id).attributes.set("axis", std::int64_t{-1});
  const auto& order = c.graph.order();
  const auto next = std::find(order.begin(), order.end(), id) + 1;
  add("Reshape", {share, shape}, y, next == order.end() ? NodeId{} : *next);
  return {};
}

Status lower_softmax(FormContext& c, NodeId id) {
  if (c.opset >= 13) return {};
  const auto rank = c.known_rank(id);
  const std::int64_t axis = c.graph.node(id).attributes.get_int("axis", -1);
  if (axis != -1 && !(rank && axis == *rank - 1)) return c.needs(id, 13, "Softmax over another axis than the last");
  if (c.opset < 11 && axis < 0 && !rank) return c.needs(id, 11, "a negative axis of a tensor of unknown rank");
  c.graph.node(id).attributes.set("axis", c.opset < 11 && axis < 0 ? *rank - 1 : axis);
  return {};
}

Status normalize_split(FormContext& c, NodeId id) {
  if (c.opset >= 18) return {};
  if (c.opset < 13) {
    if (c.graph.node(id).inputs.size() > 1) {
      return c.error(id, "expected 1 input at opset " + std::to_string(c.opset) + ", found " +
                             std::to_string(c.graph.node(id).inputs.size()));
    }
    const auto sizes = c.graph.node(id).attributes.get_ints("split");
    c.graph.node(id).attributes.erase("split");
    if (!sizes.empty()) c.graph.set_input(id, 1, c.add_ints(id, "split", sizes));
  }
  if (!c.input(id, 1).is_valid()) {
    const auto count = static_cast<std::int64_t>(c.graph.node(id).outputs.size());
    c.graph.node(id).attributes.set("num_outputs", count);
  }
  return {};
}

Status lower_split(FormContext& c, NodeId id) {
  if (c.opset >= 18) return {};
  const std::int64_t count = c.graph.node(id).attributes.get_int("num_outputs", 0);
  if (count != 0 && count != static_cast<std::int64_t>(c.graph.node(id).outputs.size())) {
    return c.error(id, "num_outputs is " + std::to_string(count) + ", found " +
                           std::to_string(c.graph.node(id).outputs.size()) + " outputs");
  }
  c.graph.node(id).attributes.erase("num_outputs");
  if (count > 0 && !c.input(id, 1).is_valid() && c.input(id, 0).is_valid()) {
    // Older opsets divide evenly or not at all; since 18 the last part may be
    // smaller, which takes explicit sizes.
    const auto& shape = c.graph.value(c.input(id, 0)).shape;
    std::int64_t axis = c.graph.node(id).attributes.get_int("axis", 0);
    if (shape && axis < 0) axis += static_cast<std::int64_t>(shape->size());
    if (shape && axis >= 0 && axis < static_cast<std::int64_t>(shape->size())) {
      const std::int64_t size = (*shape)[static_cast<std::size_t>(axis)].size;
      if (size >= 0 && size % count != 0) {
        const std::int64_t part = (size + count - 1) / count;
        std::vector<std::int64_t> sizes(static_cast<std::size_t>(std::min<std::int64_t>(count, size)), part);
        sizes.back() = size - part * (static_cast<std::int64_t>(sizes.size()) - 1);
        if (static_cast<std::int64_t>(sizes.size()) != count || sizes.back() <= 0) {
          return c.needs(id, 18, "Split into parts of which some are empty");
        }
        c.graph.set_input(id, 1, c.add_ints(id, "split", sizes));
      }
    }
  }
  if (c.opset >= 13 || !c.input(id, 1).is_valid()) {
    return {};
  }
  const auto sizes = c.known_ints(id, 1);
  if (!sizes) return c.needs(id, 13, "Split with computed sizes");
  c.graph.node(id).attributes.set("split", *sizes);
  c.drop_inputs_from(id, 1);
  return {};
}

}  // namespace ctk::graph::onnx
