#include "graph/onnx/subgraphs.h"

#include <algorithm>

#include "graph/onnx/tensor_proto.h"

namespace ctk::graph::onnx {
namespace {

class FreeNames {
 public:
  explicit FreeNames(std::set<std::string>& inner) : inner_(inner) {}

  void visit(const ::onnx::AttributeProto& attribute) {
    if (attribute.has_g()) visit(attribute.g());
    for (const auto& graph : attribute.graphs()) visit(graph);
  }

  std::vector<std::string> take() { return std::move(names_); }

 private:
  void visit(const ::onnx::GraphProto& graph) {
    std::set<std::string> defined;
    for (const auto& input : graph.input()) defined.insert(input.name());
    for (const auto& tensor : graph.initializer()) defined.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) defined.insert(tensor.values().name());
    for (const auto& node : graph.node()) defined.insert(node.output().begin(), node.output().end());
    inner_.insert(defined.begin(), defined.end());
    scopes_.push_back(std::move(defined));
    for (const auto& node : graph.node()) {
      for (const std::string& input : node.input()) read(input);
      for (const auto& attribute : node.attribute()) visit(attribute);
    }
    for (const auto& output : graph.output()) read(output.name());
    scopes_.pop_back();
  }

  void read(const std::string& name) {
    if (name.empty()) return;
    for (const auto& scope : scopes_) {
      if (scope.contains(name)) return;
    }
    if (seen_.insert(name).second) names_.push_back(name);
  }

  std::set<std::string>& inner_;
  std::set<std::string> seen_;
  std::vector<std::set<std::string>> scopes_;
  std::vector<std::string> names_;
};

Status make_inline(::onnx::GraphProto& graph, ExternalData& external) {
  for (auto& tensor : *graph.mutable_initializer()) CTK_CHECK(make_inline(tensor, external));
  for (auto& tensor : *graph.mutable_sparse_initializer()) {
    CTK_CHECK(make_inline(*tensor.mutable_values(), external));
    CTK_CHECK(make_inline(*tensor.mutable_indices(), external));
  }
  for (auto& node : *graph.mutable_node()) {
    for (auto& attribute : *node.mutable_attribute()) CTK_CHECK(make_inline(attribute, external));
  }
  return {};
}

}  // namespace

std::vector<std::string> outer_names(const ::onnx::AttributeProto& attribute, std::set<std::string>& inner) {
  FreeNames names(inner);
  names.visit(attribute);
  return names.take();
}

Status make_inline(::onnx::AttributeProto& attribute, ExternalData& external) {
  if (attribute.has_t()) CTK_CHECK(make_inline(*attribute.mutable_t(), external));
  for (auto& tensor : *attribute.mutable_tensors()) CTK_CHECK(make_inline(tensor, external));
  if (attribute.has_g()) CTK_CHECK(make_inline(*attribute.mutable_g(), external));
  for (auto& graph : *attribute.mutable_graphs()) CTK_CHECK(make_inline(graph, external));
  return {};
}

}  // namespace ctk::graph::onnx
