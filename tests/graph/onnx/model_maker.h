// Small ONNX models made through the generated protobuf classes.
#pragma once

#include <gtest/gtest.h>
#include <onnx.pb.h>

#include <string>
#include <vector>

#include "graph/onnx/read.h"
#include "graph/onnx/write.h"

namespace ctk::graph::onnx::test {

using Proto = ::onnx::AttributeProto;

struct ModelMaker {
  ::onnx::ModelProto proto;

  explicit ModelMaker(int opset = 17, int ir_version = 8) {
    proto.set_ir_version(ir_version);
    proto.mutable_graph()->set_name("g");
    import("", opset);
  }

  void import(const std::string& domain, int version) {
    auto& entry = *proto.add_opset_import();
    entry.set_domain(domain);
    entry.set_version(version);
  }

  static void declare(::onnx::ValueInfoProto& info, const std::string& name, const std::vector<std::int64_t>& dims,
                      int type = 1) {
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (std::int64_t dim : dims) tensor.mutable_shape()->add_dim()->set_dim_value(dim);
  }

  void input(const std::string& name, const std::vector<std::int64_t>& dims, int type = 1) {
    declare(*proto.mutable_graph()->add_input(), name, dims, type);
  }
  void output(const std::string& name, const std::vector<std::int64_t>& dims, int type = 1) {
    declare(*proto.mutable_graph()->add_output(), name, dims, type);
  }

  ::onnx::TensorProto& tensor(const std::string& name, const std::vector<std::int64_t>& dims, int type) {
    auto& added = *proto.mutable_graph()->add_initializer();
    added.set_name(name);
    added.set_data_type(type);
    for (std::int64_t dim : dims) added.add_dims(dim);
    return added;
  }
  ::onnx::TensorProto& floats(const std::string& name, const std::vector<std::int64_t>& dims,
                              const std::vector<float>& values) {
    auto& added = tensor(name, dims, 1);
    for (float value : values) added.add_float_data(value);
    return added;
  }
  void ints(const std::string& name, const std::vector<std::int64_t>& values) {
    auto& added = tensor(name, {static_cast<std::int64_t>(values.size())}, 7);
    for (std::int64_t value : values) added.add_int64_data(value);
  }
  void codes(const std::string& name, const std::vector<std::int64_t>& dims, int type, const std::vector<int>& values) {
    auto& added = tensor(name, dims, type);
    for (int value : values) added.add_int32_data(value);
  }

  ::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& name = "n") {
    auto& added = *proto.mutable_graph()->add_node();
    added.set_op_type(op);
    if (!name.empty()) added.set_name(name);
    for (const auto& entry : inputs) added.add_input(entry);
    for (const auto& entry : outputs) added.add_output(entry);
    return added;
  }

  std::string bytes() const { return proto.SerializeAsString(); }
};

inline Proto& attribute(::onnx::NodeProto& node, const std::string& name, Proto::AttributeType type) {
  auto& added = *node.add_attribute();
  added.set_name(name);
  added.set_type(type);
  return added;
}
inline void set_int(::onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  attribute(node, name, Proto::INT).set_i(value);
}
inline void set_float(::onnx::NodeProto& node, const std::string& name, float value) {
  attribute(node, name, Proto::FLOAT).set_f(value);
}
inline void set_text(::onnx::NodeProto& node, const std::string& name, const std::string& value) {
  attribute(node, name, Proto::STRING).set_s(value);
}
inline void set_ints(::onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
  auto& added = attribute(node, name, Proto::INTS);
  for (std::int64_t value : values) added.add_ints(value);
}

inline Result<Graph> read_text_bytes(const std::string& bytes, const std::string& folder = "",
                                     const ReadOptions& options = {}) {
  return read_model_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())), folder, options);
}
inline Result<Graph> read(const ModelMaker& model, const ReadOptions& options = {}) {
  return read_text_bytes(model.bytes(), "", options);
}
// The graph; an empty one, and a failed test, when reading fails.
inline Graph must_read(const ModelMaker& model) {
  auto graph = read(model);
  EXPECT_TRUE(graph.has_value()) << (graph ? "" : graph.error().message);
  return graph ? std::move(*graph) : Graph();
}
inline ::onnx::ModelProto must_write(const Graph& graph, int opset = 0) {
  auto bytes = write_model_bytes(graph, {opset, ""});
  EXPECT_TRUE(bytes.has_value()) << (bytes ? "" : bytes.error().message);
  ::onnx::ModelProto proto;
  EXPECT_TRUE(bytes && proto.ParseFromString(*bytes));
  return proto;
}

template <class T>
void expect_error(const Result<T>& result, ErrorCode code, const std::vector<std::string>& words) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, code);
  for (const std::string& word : words) {
    EXPECT_NE(result.error().message.find(word), std::string::npos)
        << "\"" << word << "\" is missing in: " << result.error().message;
  }
}

// Nodes of an operator, in graph order.
inline std::vector<NodeId> nodes_of(const Graph& graph, const std::string& op_type) {
  std::vector<NodeId> found;
  for (NodeId id : graph.order()) {
    if (graph.node(id).op_type == op_type) found.push_back(id);
  }
  return found;
}
inline std::vector<std::int64_t> ints_at(const Graph& graph, NodeId node, std::size_t input) {
  const auto& inputs = graph.node(node).inputs;
  if (input >= inputs.size() || !inputs[input].is_valid() || !graph.value(inputs[input]).constant) return {-999};
  return to_i64(*graph.value(inputs[input]).constant).value();
}

}  // namespace ctk::graph::onnx::test
