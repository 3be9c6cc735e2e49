#include "graph/onnx/build_graph.h"

#include <algorithm>
#include <set>

#include "graph/onnx/attribute_proto.h"
#include "graph/onnx/op_map.h"
#include "graph/onnx/subgraphs.h"
#include "graph/onnx/tensor_proto.h"

namespace ctk::graph::onnx {
namespace {

std::string domain_of(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::string where(const ::onnx::NodeProto& proto) {
  const std::string name = !proto.name().empty()                                  ? proto.name()
                           : proto.output_size() != 0 && !proto.output(0).empty() ? proto.output(0)
                                                                                  : "unnamed node";
  return name + " (" + proto.op_type() + ")";
}

Error at(const ::onnx::NodeProto& proto, const std::string& text) {
  return input_error(where(proto) + ": " + text);
}

class Builder {
 public:
  Builder(::onnx::ModelProto& model, ExternalData& external, const ReadOptions& options)
      : model_(model), proto_(*model.mutable_graph()), external_(external), options_(options) {}

  Result<Graph> build() {
    CTK_CHECK(read_header());
    CTK_CHECK(read_inputs());
    CTK_CHECK(read_initializers());
    CTK_CHECK(declare_node_outputs());
    CTK_CHECK(read_declared_types());
    for (auto& node : *proto_.mutable_node()) CTK_CHECK(read_node(node));
    CTK_CHECK(read_outputs());
    CTK_CHECK(graph_.sort());
    CTK_CHECK(normalize());
    CTK_CHECK(verify(graph_));
    return std::move(graph_);
  }

 private:
  Status read_header() {
    if (model_.functions_size() != 0) {
      return input_error("model-local functions are not supported, found \"" + model_.functions(0).name() +
                         "\". Inline them (onnx.inliner.inline_local_functions) and save "
                         "again.");
    }
    graph_.name = proto_.name();
    graph_.ir_version = static_cast<int>(std::min<std::int64_t>(model_.ir_version(), 1 << 20));
    if (graph_.ir_version < 3) {
      return input_error("expected IR version 3 or newer, found " + std::to_string(model_.ir_version()));
    }
    bool has_opset = false;
    for (const auto& import : model_.opset_import()) {
      if (import.version() < 0 || import.version() > 1 << 20) {
        return input_error("opset import of \"" + import.domain() + "\": unusable version " +
                           std::to_string(import.version()));
      }
      const int version = static_cast<int>(import.version());
      if (!domain_of(import.domain()).empty()) {
        graph_.other_opsets[import.domain()] = version;
        continue;
      }
      has_opset = true;
      graph_.opset = version;
    }
    if (has_opset && (graph_.opset < kOldestOpset || graph_.opset > kNewestOpset)) {
      return input_error("expected an opset from " + std::to_string(kOldestOpset) + " to " +
                         std::to_string(kNewestOpset) + ", found " + std::to_string(graph_.opset) +
                         ". Convert the model (onnx.version_converter) or export it again.");
    }
    const auto is_onnx = [](const ::onnx::NodeProto& node) { return domain_of(node.domain()).empty(); };
    if (!has_opset && std::any_of(proto_.node().begin(), proto_.node().end(), is_onnx)) {
      return input_error(
          "the model does not say which opset of ONNX its "
          "operators come from (opset_import)");
    }
    for (const auto& entry : model_.metadata_props()) graph_.metadata.emplace_back(entry.key(), entry.value());
    if (proto_.sparse_initializer_size() != 0) {
      return input_error("tensor \"" + proto_.sparse_initializer(0).values().name() +
                         "\": sparse initializers are not supported. Store it dense.");
    }
    return {};
  }

  // A new name, or an error that says which role it would have twice.
  Status claim(const std::string& name, const std::string& role) {
    if (name.empty()) return input_error(role + " without a name");
    if (graph_.find_value(name)) return input_error(role + " \"" + name + "\": the name is defined twice");
    return {};
  }

  // Element type and shape of a declaration, written to `dtype` and `shape`
  // where given.
  static Status read_type(const ::onnx::ValueInfoProto& info, DType& dtype, std::optional<DeclaredShape>& shape) {
    if (info.type().value_case() != ::onnx::TypeProto::kTensorType) {
      return input_error("value \"" + info.name() + "\": expected a tensor type, found " +
                         (info.has_type() ? "another kind (sequence, map, optional or sparse)" : "none"));
    }
    const auto& type = info.type().tensor_type();
    const std::optional<DType> found = dtype_from_onnx(type.elem_type());
    if (!found) {
      return input_error("value \"" + info.name() + "\": element type " + describe_onnx_type(type.elem_type()) +
                         " is not supported");
    }
    dtype = *found;
    if (!type.has_shape()) return {};
    shape.emplace();
    for (const auto& dim : type.shape().dim()) {
      const bool is_known = dim.has_dim_value() && dim.dim_value() >= 0;
      shape->push_back({is_known ? dim.dim_value() : -1, dim.dim_param()});
    }
    return {};
  }

  Status read_inputs() {
    std::set<std::string> initialized;
    for (const auto& tensor : proto_.initializer()) initialized.insert(tensor.name());
    std::string frozen;
    for (const auto& input : proto_.input()) {
      if (initialized.contains(input.name())) {
        frozen += (frozen.empty() ? "\"" : ", \"") + input.name() + "\"";
        continue;
      }
      CTK_CHECK(claim(input.name(), "graph input"));
      DType dtype = DType::f32;
      std::optional<DeclaredShape> shape;
      CTK_CHECK(read_type(input, dtype, shape));
      graph_.add_input(graph_.add_value(input.name(), dtype, std::move(shape)));
    }
    // Before IR 4 every initializer had to be listed as input; since then such
    // an input is a default one could override.
    if (!frozen.empty() && graph_.ir_version >= 4) {
      graph_.reader_notes.push_back("inputs with a default value were frozen to it: " + frozen);
    }
    return {};
  }

  Status read_initializers() {
    for (auto& tensor : *proto_.mutable_initializer()) {
      CTK_CHECK(claim(tensor.name(), "initializer"));
      if (tensor.data_type() == ::onnx::TensorProto::STRING) {
        CTK_CHECK(add_string_constant(tensor));
        continue;
      }
      CTK_TRY(Tensor value, tensor_from_proto(tensor, external_));
      graph_.add_constant(tensor.name(), std::move(value));
    }
    return {};
  }

  // Strings are never computed with: they stay in the source's encoding, as the
  // attribute of a Constant node.
  Status add_string_constant(::onnx::TensorProto& tensor) {
    ::onnx::AttributeProto attribute;
    attribute.set_name("value");
    attribute.set_type(::onnx::AttributeProto::TENSOR);
    *attribute.mutable_t() = tensor;
    CTK_TRY(Attribute value, attribute_from_proto(attribute, external_));
    Node node;
    node.op_type = "Constant";
    node.attributes.set("value", std::move(value));
    node.outputs = {graph_.add_value(tensor.name(), DType::string)};
    graph_.add_node(std::move(node));
    return {};
  }

  Status declare_node_outputs() {
    for (auto& node : *proto_.mutable_node()) {
      for (const std::string& output : node.output()) {
        if (output.empty()) continue;
        auto claimed = claim(output, "output");
        if (!claimed) return std::move(claimed).error().with_context(where(node));
        if (node.op_type() == "Constant" && domain_of(node.domain()).empty()) {
          CTK_TRY(const bool is_done, add_constant_node(node));
          if (is_done) {
            constant_nodes_.insert(&node);
            continue;
          }
        }
        graph_.add_value(output, DType::f32);
      }
    }
    return {};
  }

  // A Constant node becomes a constant value; false when its contents are
  // carried in the node (strings).
  Result<bool> add_constant_node(::onnx::NodeProto& node) {
    if (node.attribute_size() != 1 || node.output_size() != 1) {
      return at(node, "expected one attribute and one output, found " + std::to_string(node.attribute_size()) +
                          " and " + std::to_string(node.output_size()));
    }
    const OpRow* row = find_row("Constant");
    const std::string name = node.attribute(0).name();
    auto read = attribute_from_proto(*node.mutable_attribute(0), external_);
    if (!read) return std::move(read).error().with_context(where(node));
    const Attribute& value = *read;
    const bool is_listed = std::any_of(row->attributes.begin(), row->attributes.end(), [&](const AttributeRule& rule) {
      return rule.name == name && graph_.opset >= rule.since;
    });
    if (!is_listed) {
      return at(node,
                "attribute \"" + name + "\" does not belong to Constant at opset " + std::to_string(graph_.opset));
    }
    std::optional<Tensor> tensor;
    if (name == "value" && std::holds_alternative<Tensor>(value)) tensor = std::get<Tensor>(value);
    if (const auto* number = std::get_if<std::int64_t>(&value); number != nullptr && name == "value_int") {
      tensor = Tensor::scalar(*number);
    }
    if (const auto* real = std::get_if<float>(&value); real != nullptr && name == "value_float") {
      tensor = Tensor::scalar(*real);
    }
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value); list != nullptr && name == "value_ints") {
      tensor = Tensor::of<std::int64_t>({static_cast<std::int64_t>(list->size())}, *list);
    }
    if (const auto* list = std::get_if<std::vector<float>>(&value); list != nullptr && name == "value_floats") {
      tensor = Tensor::of<float>({static_cast<std::int64_t>(list->size())}, *list);
    }
    if (tensor) {
      graph_.add_constant(node.output(0), std::move(*tensor));
      return true;
    }
    if (name == "value_string" || name == "value_strings" || is_string_tensor(node.attribute(0))) return false;
    return at(node, "attribute \"" + name + "\" has the wrong type or an unsupported element type");
  }

  static bool is_string_tensor(const ::onnx::AttributeProto& attribute) {
    return attribute.name() == "value" && attribute.t().data_type() == ::onnx::TensorProto::STRING;
  }

  Status read_declared_types() {
    for (const auto& info : proto_.value_info()) {
      const auto id = graph_.find_value(info.name());
      if (!id || graph_.value(*id).is_constant() || graph_.value(*id).shape) continue;
      Value& value = graph_.value(*id);
      // What we have no use for (sequences, float8) is only met by operators we
      // carry unread.
      (void)read_type(info, value.dtype, value.shape).has_value();
    }
    return {};
  }

  Result<ValueId> look_up(const ::onnx::NodeProto& proto, const std::string& name, const char* reader) {
    if (name.empty()) return ValueId{};
    const auto id = graph_.find_value(name);
    if (!id) return at(proto, std::string(reader) + " reads \"" + name + "\", which nothing defines");
    return *id;
  }

  Status read_node(::onnx::NodeProto& proto) {
    if (constant_nodes_.contains(&proto)) return {};
    Node node;
    node.name = proto.name();
    node.domain = domain_of(proto.domain());
    node.op_type = proto.op_type();
    if (node.op_type.empty()) return at(proto, "the node has no operator type");
    CTK_CHECK(check_domain(proto, node.domain));
    for (const std::string& input : proto.input()) {
      CTK_TRY(const ValueId id, look_up(proto, input, "the node"));
      node.inputs.push_back(id);
    }
    for (const std::string& output : proto.output()) {
      node.outputs.push_back(output.empty() ? ValueId{} : *graph_.find_value(output));
    }
    for (auto& attribute : *proto.mutable_attribute()) {
      if (attribute.name().empty()) return at(proto, "an attribute has no name");
      if (node.attributes.find(attribute.name()) != nullptr) {
        return at(proto, "attribute \"" + attribute.name() + "\" is given twice");
      }
      for (const std::string& name : outer_names(attribute, inner_names_)) {
        CTK_TRY(const ValueId id, look_up(proto, name, "a subgraph of the node"));
        if (std::find(node.captured.begin(), node.captured.end(), id) == node.captured.end())
          node.captured.push_back(id);
      }
      auto value = attribute_from_proto(attribute, external_);
      if (!value) return std::move(value).error().with_context(where(proto));
      node.attributes.set(attribute.name(), std::move(*value));
    }
    while (!node.inputs.empty() && !node.inputs.back().is_valid()) node.inputs.pop_back();
    while (!node.outputs.empty() && !node.outputs.back().is_valid()) node.outputs.pop_back();
    graph_.add_node(std::move(node));
    return {};
  }

  Status check_domain(const ::onnx::NodeProto& proto, const std::string& domain) {
    if (domain.empty()) return {};
    const auto import = graph_.other_opsets.find(domain);
    if (import == graph_.other_opsets.end()) {
      return at(proto, "operator of domain \"" + domain + "\", which the model does not import (opset_import)");
    }
    if (!options_.allow_custom_ops) {
      return at(proto, "operator of domain \"" + domain + "\" version " + std::to_string(import->second) +
                           " is not known, and custom operators are not allowed here");
    }
    return {};
  }

  Status read_outputs() {
    if (proto_.output_size() == 0)
      return input_error(
          "expected a graph with outputs, found none. Export the model again with its results as outputs");
    for (const auto& output : proto_.output()) {
      const auto id = graph_.find_value(output.name());
      if (!id) return input_error("graph output \"" + output.name() + "\" is produced by no node");
      if (graph_.is_output(*id)) return input_error("graph output \"" + output.name() + "\" is listed twice");
      graph_.add_output(*id);
      Value& value = graph_.value(*id);
      if (value.is_constant()) continue;
      if (!output.has_type()) {
        graph_.reader_notes.push_back("output \"" + output.name() + "\" has no declared type: float32 is assumed");
        continue;
      }
      std::optional<DeclaredShape> shape = value.shape;
      CTK_CHECK(read_type(output, value.dtype, shape));
      value.shape = std::move(shape);
    }
    return {};
  }

  Status normalize() {
    FormContext context{graph_, graph_.opset, &inner_names_};
    const std::size_t value_count = graph_.value_capacity();
    const std::vector<NodeId> order = graph_.order();
    for (NodeId id : order) CTK_CHECK(normalize_node(context, id));
    // Only what normalizing itself left over goes; initializers that nobody
    // reads stay as they were.
    bool has_leftovers = !context.orphans.empty();
    for (std::size_t i = 0; i < value_count && !has_leftovers; ++i) {
      const ValueId id{static_cast<std::uint32_t>(i)};
      const Value& value = graph_.value(id);
      const auto inputs = graph_.inputs();
      has_leftovers = !value.producer.is_valid() && !value.is_constant() &&
                      std::find(inputs.begin(), inputs.end(), id) == inputs.end();
    }
    if (has_leftovers) graph_.remove_dead_values();
    return {};
  }

  ::onnx::ModelProto& model_;
  ::onnx::GraphProto& proto_;
  ExternalData& external_;
  ReadOptions options_;
  Graph graph_;
  std::set<const ::onnx::NodeProto*> constant_nodes_;  // those that became values
  std::set<std::string> inner_names_;                  // defined inside subgraphs
};

}  // namespace

Result<Graph> build_graph(::onnx::ModelProto& model, ExternalData& external, const ReadOptions& options) {
  return Builder(model, external, options).build();
}

}  // namespace ctk::graph::onnx
