#include "graph/onnx/write.h"

#include <onnx.pb.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "core/file.h"
#include "graph/onnx/attribute_proto.h"
#include "graph/onnx/op_map.h"
#include "graph/onnx/read.h"
#include "graph/onnx/tensor_proto.h"

namespace ctk::graph::onnx {
namespace {

// Smaller tensors stay inside the model, where tools look for shapes and axes.
constexpr std::size_t kLeastExternalBytes = 1024;

// The IR version each opset was released with; older readers refuse the pair otherwise.
int least_ir_version(int opset) {
  constexpr std::array<int, kNewestOpset - kOldestOpset + 1> kVersions{4, 5, 6, 7, 7,  7,  8,  8,
                                                                       8, 8, 9, 9, 10, 10, 11, 12};
  return kVersions[static_cast<std::size_t>(opset - kOldestOpset)];
}

// Constants that go to the data file, and where they lie in it.
struct Placement {
  ValueId value;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// Large elements first, so that every tensor is aligned for its type without a byte of padding.
std::vector<Placement> place(const Graph& graph, const std::vector<ValueId>& constants) {
  std::vector<Placement> placed;
  for (ValueId id : constants) {
    const Tensor& tensor = *graph.value(id).constant;
    if (tensor.bytes() >= kLeastExternalBytes) placed.push_back({id, 0, tensor.bytes()});
  }
  const auto bits = [&](const Placement& p) { return bits_of(graph.value(p.value).constant->dtype()); };
  std::stable_sort(placed.begin(), placed.end(),
                   [&](const Placement& a, const Placement& b) { return bits(a) > bits(b); });
  std::size_t offset = 0;
  for (Placement& p : placed) {
    p.offset = offset;
    offset += p.bytes;
  }
  return placed;
}

void write_declaration(const Value& value, ::onnx::ValueInfoProto& info) {
  info.set_name(value.name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_number_of(value.dtype));
  if (!value.shape) return;
  auto& shape = *type.mutable_shape();
  for (const Dim& declared : *value.shape) {
    auto& dim = *shape.add_dim();
    if (declared.size >= 0) {
      dim.set_dim_value(declared.size);
    } else if (!declared.symbol.empty()) {
      dim.set_dim_param(declared.symbol);
    }
  }
}

class Writer {
 public:
  Writer(const Graph& graph, const WriteOptions& options)
      : source_(graph), opset_(options.opset == 0 ? graph.opset : options.opset), location_(options.external_data) {}

  // Fills model() and placements().
  Status build() {
    if (opset_ < kOldestOpset || opset_ > kNewestOpset) {
      return config_error("opset: expected " + std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset) +
                          ", found " + std::to_string(opset_));
    }
    if (auto sound = verify(source_); !sound) return internal_error("graph to be written: " + sound.error().message);
    CTK_CHECK(lower());
    write_header();
    CTK_CHECK(write_constants());
    for (NodeId id : graph_.order()) CTK_CHECK(write_node(graph_.node(id)));
    write_values();
    return {};
  }

  Result<std::string> serialize() const {
    if (model_.ByteSizeLong() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      return input_error("the model has " + std::to_string(model_.ByteSizeLong()) +
                         " bytes; an ONNX file holds at most 2147483647. Write its tensors as external data.");
    }
    std::string bytes;
    if (!model_.SerializeToString(&bytes)) return internal_error("the model could not be serialized");
    return bytes;
  }

  const std::vector<Placement>& placements() const { return placements_; }
  const Graph& graph() const { return graph_; }

 private:
  Status lower() {
    FormContext context{graph_, opset_};
    context.sizes = fixed_sizes(graph_);  // before any node has a form that shape rules do not know
    const std::vector<NodeId> order = graph_.order();
    for (NodeId id : order) {
      if (opset_ != graph_.opset) CTK_CHECK(check_can_move(context, id));
      CTK_CHECK(lower_node(context, id));
    }
    orphans_ = std::move(context.orphans);
    return {};
  }

  // An operator we do not know means something at the file's opset only.
  Status check_can_move(const FormContext& context, NodeId id) const {
    const Node& node = graph_.node(id);
    const std::string both = "; the model has opset " + std::to_string(graph_.opset) + ", asked for is opset " +
                             std::to_string(opset_) + ". Keep the opset.";
    if (node.domain.empty() && node.op == Op::unknown) {
      return context.error(id, "an operator that is carried unread cannot change its opset" + both);
    }
    for (const auto& [name, value] : node.attributes.items()) {
      const auto* opaque = std::get_if<OpaqueAttribute>(&value);
      ::onnx::AttributeProto proto;
      if (opaque == nullptr || !proto.ParseFromString(opaque->bytes)) continue;
      if (proto.has_g() || proto.graphs_size() != 0) {
        return context.error(id, "the subgraph \"" + name + "\" that is carried unread cannot change its opset" + both);
      }
    }
    return {};
  }

  void write_header() {
    model_.set_ir_version(std::max(graph_.ir_version, least_ir_version(opset_)));
    model_.set_producer_name("compress");
    auto& main = *model_.add_opset_import();
    main.set_domain("");
    main.set_version(opset_);
    for (const auto& [domain, version] : graph_.other_opsets) {
      auto& import = *model_.add_opset_import();
      import.set_domain(domain);
      import.set_version(version);
    }
    for (const auto& [key, value] : graph_.metadata) {
      auto& entry = *model_.add_metadata_props();
      entry.set_key(key);
      entry.set_value(value);
    }
    model_.mutable_graph()->set_name(graph_.name.empty() ? "graph" : graph_.name);
  }

  Status write_constants() {
    std::vector<ValueId> constants;
    for (std::size_t i = 0; i < graph_.value_capacity(); ++i) {
      const ValueId id{static_cast<std::uint32_t>(i)};
      const Value& value = graph_.value(id);
      if (value.is_removed) continue;
      if (value.quantized != nullptr || value.activation_quant) {
        return internal_error("value \"" + value.name + "\" bears a quantization note, which ONNX has no form for");
      }
      if (!value.constant) continue;
      const bool is_left_over = orphans_.contains(id) && value.consumers.empty() && !graph_.is_output(id);
      if (!is_left_over) constants.push_back(id);
    }
    if (!location_.empty()) placements_ = place(graph_, constants);
    std::vector<const Placement*> placement_of(graph_.value_capacity(), nullptr);
    for (const Placement& p : placements_) placement_of[p.value.index] = &p;
    for (ValueId id : constants) {
      const Value& value = graph_.value(id);
      const Placement* placement = placement_of[id.index];
      auto& proto = *model_.mutable_graph()->add_initializer();
      tensor_to_proto(*value.constant, value.name, placement == nullptr, proto);
      if (placement == nullptr) continue;
      proto.set_data_location(::onnx::TensorProto::EXTERNAL);
      add_entry(proto, "location", location_);
      add_entry(proto, "offset", std::to_string(placement->offset));
      add_entry(proto, "length", std::to_string(placement->bytes));
    }
    return {};
  }

  static void add_entry(::onnx::TensorProto& proto, const std::string& key, const std::string& value) {
    auto& entry = *proto.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }

  // The first node of a name keeps it, a later one gets a number behind: ONNX Runtime refuses two of one name.
  std::string distinct_name(const std::string& name) {
    if (node_names_.insert(name).second) return name;
    std::set<std::string> others;
    for (NodeId id : graph_.order()) others.insert(graph_.node(id).name);
    for (int number = 2;; ++number) {
      const std::string tried = name + "_" + std::to_string(number);
      if (!others.contains(tried) && node_names_.insert(tried).second) return tried;
    }
  }

  Status write_node(const Node& node) {
    auto& proto = *model_.mutable_graph()->add_node();
    if (!node.name.empty()) proto.set_name(distinct_name(node.name));
    if (!node.domain.empty()) proto.set_domain(node.domain);
    proto.set_op_type(node.op_type);
    const auto name_of_value = [&](ValueId id) { return id.is_valid() ? graph_.value(id).name : std::string(); };
    std::vector<ValueId> inputs = node.inputs;
    while (!inputs.empty() && !inputs.back().is_valid()) inputs.pop_back();
    for (ValueId input : inputs) proto.add_input(name_of_value(input));
    for (ValueId output : node.outputs) proto.add_output(name_of_value(output));
    for (const auto& [name, value] : node.attributes.items()) {
      CTK_CHECK(attribute_to_proto(name, value, *proto.add_attribute()));
    }
    return {};
  }

  void write_values() {
    auto& graph = *model_.mutable_graph();
    for (ValueId id : graph_.inputs()) write_declaration(graph_.value(id), *graph.add_input());
    for (ValueId id : graph_.outputs()) write_declaration(graph_.value(id), *graph.add_output());
    for (NodeId node : graph_.order()) {
      for (ValueId id : graph_.node(node).outputs) {
        // Without a declared shape the element type is a guess, which must not be written as a claim.
        if (!id.is_valid() || !graph_.value(id).shape || graph_.is_output(id)) continue;
        write_declaration(graph_.value(id), *graph.add_value_info());
      }
    }
  }

  const Graph& source_;
  Graph graph_ = source_.clone();
  int opset_;
  std::string location_;
  std::set<ValueId> orphans_;
  std::set<std::string> node_names_;  // written so far
  std::vector<Placement> placements_;
  ::onnx::ModelProto model_;
};

}  // namespace

Result<std::string> write_model_bytes(const Graph& graph, const WriteOptions& options) {
  if (!options.external_data.empty()) {
    return internal_error("external data needs a folder: use write_model");
  }
  Writer writer(graph, options);
  CTK_CHECK(writer.build());
  return writer.serialize();
}

Status write_model(const Graph& graph, const std::string& path, const WriteOptions& options) {
  std::string data_path;
  if (!options.external_data.empty()) {
    CTK_TRY(data_path, path_for_writing(std::filesystem::path(path).parent_path().string(), options.external_data));
    if (std::filesystem::path(data_path).filename() == std::filesystem::path(path).filename() &&
        is_same_file(std::filesystem::path(data_path).parent_path().string(),
                     std::filesystem::absolute(path).parent_path().string())) {
      return config_error(path + ": the data file needs another name than the model");
    }
  }
  Writer writer(graph, options);
  CTK_CHECK(writer.build());
  CTK_TRY(const std::string bytes, writer.serialize());
  if (data_path.empty()) return write_file(path, bytes);

  // Both files are written under temporary names before either takes its place.
  CTK_TRY(FileWriter model, FileWriter::create(path));
  CTK_CHECK(model.append(std::as_bytes(std::span(bytes.data(), bytes.size()))));
  CTK_TRY(FileWriter data, FileWriter::create(data_path));
  for (const Placement& p : writer.placements()) {
    CTK_CHECK(data.append(writer.graph().value(p.value).constant->raw()));
  }
  CTK_CHECK(data.commit());
  return model.commit();
}

}  // namespace ctk::graph::onnx
