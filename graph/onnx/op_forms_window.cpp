// Windows written so that every reader sizes them alike. Four forms mean different networks to ONNX Runtime, to onnx's
// shape inference and to the operator's specification, which window_of() follows:
// - auto_pad SAME_* with dilations: ONNX Runtime's pools leave the dilation out of the padding, its Conv refuses it;
// - auto_pad SAME_* with a stride above the kernel: ONNX Runtime pads by less than nothing, or refuses that;
// - ceil_mode where the last window would start in the padding: onnx's inference counts it, nobody computes it;
// - auto_pad SAME_* of a ConvTranspose with output_padding: onnx's inference adds the output_padding once more.
// Explicit pads and rounding down say the same without room for doubt. A pool whose input size is open stays as it was.
#include <algorithm>

#include "graph/onnx/op_forms.h"
#include "graph/ops/window.h"
#include "graph/shapes.h"

namespace ctk::graph::onnx {
namespace {

bool is_same_padded(const Node& node) {
  return node.attributes.get_string("auto_pad", "NOTSET").starts_with("SAME_");
}

bool has_other_than(const Node& node, const char* attribute, std::int64_t neutral) {
  const std::vector<std::int64_t> values = node.attributes.get_ints(attribute);
  return std::any_of(values.begin(), values.end(), [&](std::int64_t v) { return v != neutral; });
}

// Spatial sizes of the kernel: as the attribute, or the weight (or the codes it is dequantized from), tells.
std::vector<std::int64_t> kernel_of(const Graph& graph, const Node& node) {
  std::vector<std::int64_t> kernel = node.attributes.get_ints("kernel_shape");
  if (!kernel.empty() || node.inputs.size() < 2 || !node.inputs[1].is_valid()) return kernel;
  ValueId weight = node.inputs[1];
  if (const NodeId producer = graph.value(weight).producer; producer.is_valid()) {
    if (graph.node(producer).op == Op::DequantizeLinear) weight = graph.node(producer).inputs[0];
  }
  if (!weight.is_valid() || !graph.value(weight).shape) return kernel;
  const DeclaredShape& shape = *graph.value(weight).shape;
  for (std::size_t d = 2; d < shape.size(); ++d) kernel.push_back(shape[d].size);
  return kernel;
}

// auto_pad SAME_* with dilations, or with kernels that leave part of a stride unread.
bool is_misread(const Graph& graph, const Node& node) {
  if (node.op != Op::Conv && node.op != Op::AveragePool && node.op != Op::MaxPool) return false;
  if (!is_same_padded(node)) return false;
  if (has_other_than(node, "dilations", 1)) return true;
  const std::vector<std::int64_t> kernel = kernel_of(graph, node), strides = node.attributes.get_ints("strides");
  for (std::size_t d = 0; d < std::min(kernel.size(), strides.size()); ++d) {
    if (strides[d] > kernel[d]) return true;
  }
  return false;
}

bool rounds_up(const Node& node) {
  return (node.op == Op::AveragePool || node.op == Op::MaxPool) && !is_same_padded(node) &&
         node.attributes.get_int("ceil_mode", 0) != 0;
}

// Shape of an input as declared, or else as inferred; only the batch may be open, and comes as 1.
std::optional<Shape> known_shape(const FormContext& c, ValueId id) {
  if (!id.is_valid()) return std::nullopt;
  Shape shape;
  if (const auto& declared = c.graph.value(id).shape) {
    for (const Dim& dim : *declared) shape.push_back(dim.size);
  } else if (id.index < c.sizes.size()) {
    shape = c.sizes[id.index];
  }
  if (!shape.empty() && shape[0] < 0) shape[0] = 1;
  const bool is_open = std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; });
  if (shape.empty() || is_open) return std::nullopt;
  return shape;
}

void set_pads(Node& node, const Window& window) {
  std::vector<std::int64_t> pads;
  for (std::size_t d = 0; d < window.rank; ++d) pads.push_back(window.dims[d].pad_begin);
  for (std::size_t d = 0; d < window.rank; ++d) pads.push_back(window.dims[d].pad_end);
  node.attributes.erase("auto_pad");
  node.attributes.set("pads", std::move(pads));
}

// Elements that the last window reaches past the padded input. Negative where one more window would have room to start.
std::int64_t overhang(const WindowDim& dim) {
  return (dim.output - 1) * dim.stride + dim.extent() - (dim.input + dim.pad_begin + dim.pad_end);
}

// Pads `window` so that its sizes come out rounding down. Not where the new padding would enter a mean.
bool can_round_down(const Node& node, Window& window) {
  const bool counts_pads = node.op == Op::AveragePool && node.attributes.get_int("count_include_pad", 0) != 0;
  for (std::size_t d = 0; d < window.rank; ++d) {
    WindowDim& dim = window.dims[d];
    if (overhang(dim) <= 0 || dim.output == 1) continue;
    dim.pad_end += overhang(dim);
    if (counts_pads || dim.pad_end >= dim.kernel) return false;  // as many pads as taps: ONNX Runtime refuses it
  }
  return true;
}

Result<std::vector<InferredValue>> infer_bound(const Graph& graph, std::int64_t open_size) {
  std::vector<Shape> shapes;
  for (ValueId input : graph.inputs()) {
    Shape& shape = shapes.emplace_back();
    if (!graph.value(input).shape) continue;
    for (const Dim& dim : *graph.value(input).shape) shape.push_back(dim.size < 0 ? open_size : dim.size);
  }
  return infer_shapes(graph, shapes, true);
}

}  // namespace

std::vector<Shape> fixed_sizes(const Graph& graph) {
  const auto& order = graph.order();
  const bool is_asked = std::any_of(order.begin(), order.end(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return is_misread(graph, node) || rounds_up(node);
  });
  if (!is_asked) return {};
  const auto one = infer_bound(graph, 1), two = infer_bound(graph, 2);
  if (!one || !two) return {};
  std::vector<Shape> sizes(one->size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!(*one)[i].known || !(*two)[i].known) continue;
    const Shape &a = (*one)[i].info.shape, &b = (*two)[i].info.shape;
    for (std::size_t d = 0; d < a.size() && a.size() == b.size(); ++d) sizes[i].push_back(a[d] == b[d] ? a[d] : -1);
  }
  return sizes;
}

Status lower_window(FormContext& c, NodeId id) {
  const Node& node = c.graph.node(id);
  const bool is_same_misread = is_misread(c.graph, node);
  if (!is_same_misread && !rounds_up(node)) return {};
  const std::optional<Shape> x = known_shape(c, c.input(id, 0));
  if (!x) return {};
  auto window = window_of(node, *x, kernel_of(c.graph, node));
  if (!window) return {};  // an illegal node is carried as it is
  if (is_same_misread) {
    set_pads(c.graph.node(id), *window);
    c.graph.node(id).attributes.erase("ceil_mode");
    return {};
  }
  bool is_miscounted = false;
  for (std::size_t d = 0; d < window->rank; ++d) {
    is_miscounted = is_miscounted || overhang(window->dims[d]) < 0;  // rounded up, onnx's inference counts it
  }
  if (!is_miscounted || !can_round_down(node, *window)) return {};
  set_pads(c.graph.node(id), *window);
  c.graph.node(id).attributes.erase("ceil_mode");
  return {};
}

Status lower_conv_transpose(FormContext& c, NodeId id) {
  const Node& node = c.graph.node(id);
  if (!is_same_padded(node) || !has_other_than(node, "output_padding", 0)) return {};
  if (!node.attributes.get_ints("output_shape").empty()) return {};
  const std::vector<std::int64_t> kernel = kernel_of(c.graph, node);
  // The pads are what kernels reach past the stride, whatever the input's size.
  const auto window = transposed_window_of(node, Shape(kernel.size() + 2, 1), kernel);
  if (window) set_pads(c.graph.node(id), *window);
  return {};
}

}  // namespace ctk::graph::onnx
