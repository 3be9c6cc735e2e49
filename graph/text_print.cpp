// Prints a graph line by line. The grammar stands in graph/text.h.
#include <unordered_map>

#include "graph/text_lines.h"

namespace ctk::graph {
namespace text {
namespace {

void append_value(std::string& out, const Graph& graph, ValueId id) {
  if (!id.is_valid()) {
    out += '_';
    return;
  }
  out += '%';
  append_word(out, graph.value(id).name, true);
}

void append_values(std::string& out, const Graph& graph, const std::vector<ValueId>& ids) {
  out += '(';
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i != 0) out += ", ";
    append_value(out, graph, ids[i]);
  }
  out += ')';
}

void append_dim(std::string& out, const Dim& dim) {
  if (!dim.symbol.empty()) {
    // A symbol that starts like a number is quoted, so that the first character tells a size from a symbol.
    const char first = dim.symbol[0];
    if ((first >= '0' && first <= '9') || first == '-' || first == '+') {
      append_string(out, dim.symbol);
    } else {
      append_word(out, dim.symbol);
    }
    if (dim.size < 0) return;
    out += '=';
  }
  if (dim.size < 0) {
    out += '?';
  } else {
    append_int(out, dim.size);
  }
}

void append_declaration(std::string& out, const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  append_value(out, graph, id);
  out += ": ";
  out += name_of(value.dtype);
  if (value.shape) {
    out += " [";
    for (std::size_t i = 0; i < value.shape->size(); ++i) {
      if (i != 0) out += ',';
      append_dim(out, (*value.shape)[i]);
    }
    out += ']';
  }
  if (value.activation_quant) {
    out += " q8(";
    append_float(out, value.activation_quant->scale);
    out += ", ";
    append_int(out, value.activation_quant->zero_point);
    out += ')';
  }
}

std::string constant_line(const Graph& graph, ValueId id, ConstantSink* sink) {
  const Value& value = graph.value(id);
  std::string out = "const ";
  append_declaration(out, graph, id);
  out += " =";
  if (value.constant) {
    out += ' ';
    append_tensor(out, *value.constant, sink, &value.dtype, value.shape ? &*value.shape : nullptr);
  }
  if (value.quantized != nullptr) {
    const QuantTensor& weight = *value.quantized;
    out += " quant(" + to_string(weight.scheme) + ", axis ";
    append_int(out, weight.channel_axis);
    out += ", groups ";
    append_int(out, weight.group_count);
    out += ", ";
    append_string(out, weight.method);
    out += ") ";
    append_tensor(out, weight.codes, sink);
    out += " scales ";
    const Tensor scales = Tensor::of<float>({static_cast<std::int64_t>(weight.scales.size())}, weight.scales);
    append_tensor(out, has_half_scales(weight) ? cast(scales, DType::f16).value() : scales, sink);
    if (weight.scheme.is_affine) {
      out += " zeros ";
      append_tensor(out, pack_codes(scales.shape(), weight.zeros, weight.scheme.weight_bits), sink);
    }
  }
  return out;
}

std::string node_line(const Graph& graph, NodeId id, ConstantSink* sink, const std::vector<std::size_t>& places) {
  const Node& node = graph.node(id);
  std::string out;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (i != 0) out += ", ";
    if (node.outputs[i].is_valid()) {
      append_declaration(out, graph, node.outputs[i]);
    } else {
      out += '_';
    }
  }
  out += node.outputs.empty() ? "= " : " = ";
  if (!node.domain.empty()) {
    append_word(out, node.domain);
    out += "::";
  }
  append_word(out, node.op_type);
  append_values(out, graph, node.inputs);
  if (!node.attributes.items().empty()) {
    out += " {";
    bool is_first = true;
    for (const auto& [name, attribute] : node.attributes.items()) {
      if (!is_first) out += ", ";
      is_first = false;
      append_word(out, name);
      out += '=';
      append_attribute(out, attribute, sink);
    }
    out += '}';
  }
  if (!node.captured.empty()) {
    out += " captures";
    append_values(out, graph, node.captured);
  }
  if (node.absorbed_by.is_valid() && !graph.node(node.absorbed_by).is_removed) {
    out += " into ";
    ValueId target;
    for (ValueId output : graph.node(node.absorbed_by).outputs) {
      if (!target.is_valid()) target = output;
    }
    if (target.is_valid()) {
      append_value(out, graph, target);
    } else {
      out += '#';
      append_int(out, static_cast<std::int64_t>(places[node.absorbed_by.index]));
    }
  }
  if (node.scheme != QuantScheme{}) {
    const std::string scheme = to_string(node.scheme);
    if (scheme != "fp32") out += " scheme " + scheme;
  }
  if (!node.name.empty()) {
    out += " @";
    append_word(out, node.name, true);
  }
  return out;
}

// Lines under construction; a key that repeats gets a number, so that keys stay unique within a graph.
class Lines {
 public:
  explicit Lines(bool with_keys) : with_keys_(with_keys) {}
  void add(const char* kind, std::string_view about, std::string text) {
    std::string key;
    if (with_keys_) {
      key = std::string(kind) + " " + std::string(about);
      if (const int earlier = seen_[key]++; earlier > 0) key += " #" + std::to_string(earlier);
    }
    lines_.push_back({std::move(key), std::move(text)});
  }
  std::vector<Line> take() { return std::move(lines_); }

 private:
  bool with_keys_;
  std::vector<Line> lines_;
  std::unordered_map<std::string, int> seen_;
};

void add_header(Lines& lines, const Graph& graph) {
  std::string head = "graph ";
  append_string(head, graph.name);
  head += " ir " + std::to_string(graph.ir_version) + " opset " + std::to_string(graph.opset);
  lines.add("graph", "", std::move(head));
  for (const auto& [domain, version] : graph.other_opsets) {
    std::string line = "opset ";
    append_string(line, domain);
    lines.add("opset", domain, line + " " + std::to_string(version));
  }
  for (const auto& [key, value] : graph.metadata) {
    std::string line = "meta ";
    append_string(line, key);
    line += ' ';
    append_string(line, value);
    lines.add("meta", key, std::move(line));
  }
  for (const std::string& note : graph.reader_notes) {
    std::string line = "note ";
    append_string(line, note);
    lines.add("note", note, std::move(line));
  }
}

// Inputs first, in their order; one that is a constant too has its const line just before.
void add_values(Lines& lines, const Graph& graph, ConstantSink* sink) {
  std::vector<bool> is_input(graph.value_capacity(), false);
  for (ValueId id : graph.inputs()) {
    is_input[id.index] = true;
    const Value& value = graph.value(id);
    std::string line = "in ";
    if (value.is_constant()) {
      lines.add("const", value.name, constant_line(graph, id, sink));
      append_value(line, graph, id);
    } else {
      append_declaration(line, graph, id);
    }
    lines.add("in", value.name, std::move(line));
  }
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const ValueId id{static_cast<std::uint32_t>(i)};
    const Value& value = graph.value(id);
    if (value.is_removed || is_input[i]) continue;
    if (value.is_constant()) {
      lines.add("const", value.name, constant_line(graph, id, sink));
    } else if (!value.producer.is_valid()) {
      std::string line = "value ";
      append_declaration(line, graph, id);
      lines.add("value", value.name, std::move(line));
    }
  }
}

}  // namespace

std::vector<Line> lines_of(const Graph& graph, ConstantSink* sink, bool with_keys) {
  Lines lines(with_keys);
  add_header(lines, graph);
  add_values(lines, graph, sink);
  std::vector<std::size_t> places(graph.node_capacity(), 0);
  std::unordered_map<std::string_view, int> bearers;  // nodes that share a name go by their first output
  for (std::size_t i = 0; i < graph.order().size(); ++i) {
    places[graph.order()[i].index] = i;
    ++bearers[graph.node(graph.order()[i]).name];
  }
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    std::string_view about = node.name;
    if (node.name.empty() || bearers[node.name] > 1) {
      for (std::size_t i = node.outputs.size(); i-- > 0;) {
        if (node.outputs[i].is_valid()) about = graph.value(node.outputs[i]).name;
      }
    }
    lines.add("node", about, node_line(graph, id, sink, places));
  }
  for (ValueId id : graph.outputs()) {
    std::string line = "out ";
    append_value(line, graph, id);
    lines.add("out", graph.value(id).name, std::move(line));
  }
  return lines.take();
}

}  // namespace text

std::string print_graph(const Graph& graph, ConstantSink* sink) {
  std::string out;
  for (const text::Line& line : text::lines_of(graph, sink, false)) {
    out += line.text;
    out += '\n';
  }
  return out;
}

}  // namespace ctk::graph
