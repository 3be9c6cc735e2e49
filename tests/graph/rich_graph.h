// A graph that holds every kind of fact, and what the tests of its text need to build and keep one.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graph/text.h"

namespace ctk::graph::test {

// Keeps tensors in memory under their number.
class Store : public ConstantSink, public ConstantSource {
 public:
  std::string store(const Tensor& tensor) override {
    held_.push_back(tensor);
    return std::to_string(held_.size() - 1);
  }
  Result<Tensor> load(std::string_view reference, DType dtype, const Shape& shape) override {
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (reference == std::to_string(i) && held_[i].dtype() == dtype && held_[i].shape() == shape) return held_[i];
    }
    return input_error("no tensor \"" + std::string(reference) + "\" of that type");
  }

 private:
  std::vector<Tensor> held_;
};

template <class T>
Tensor tensor_of(Shape shape, std::vector<T> values) {
  return Tensor::of<T>(std::move(shape), values);
}

inline DeclaredShape sizes(std::initializer_list<std::int64_t> list) {
  DeclaredShape shape;
  for (std::int64_t size : list) shape.push_back({size, ""});
  return shape;
}

inline Node make_node(std::string type, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
                      std::string name = "") {
  Node node;
  node.op_type = std::move(type);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.name = std::move(name);
  return node;
}

inline Tensor ramp(Shape shape) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(shape)).value();
  auto values = tensor.mutable_values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.1f;
  return tensor;
}

// Every kind of fact a graph can hold.
inline Graph rich_graph() {
  Graph g;
  g.name = "a \"rich\" graph\n";
  g.ir_version = 9;
  g.opset = 17;
  g.other_opsets = {{"com.acme", 3}, {"ai.onnx.ml", 2}};
  g.metadata = {{"author", "Zo\xc3\xab"}, {"author", "twice"}, {"", "\x01\x7f\xff\\"}};
  g.reader_notes = {"default of input W was frozen"};
  const ValueId x =
      g.add_value("x", DType::f32, DeclaredShape{{-1, "N"}, {3, ""}, {-1, ""}, {8, "width"}, {-1, "2*N"}});
  g.value(x).activation_quant = ActivationQuant{0.1f, 114};
  const ValueId w = g.add_constant("conv1.weight", ramp({4, 3, 3, 3}));
  const ValueId b = g.add_constant("b:ias", tensor_of<float>({4}, {1.0f, -0.0f, std::nanf(""), -INFINITY}));
  const ValueId odd =
      g.add_constant("\xe5\x90\x8d \xc3( :", tensor_of<std::int64_t>({}, {std::numeric_limits<std::int64_t>::min()}));
  g.add_input(x);
  g.add_input(w);  // a constant that is an input too

  auto quantized = std::make_shared<QuantTensor>();
  quantized->scheme = parse_scheme("w4a8_c").value();
  const std::vector<std::int8_t> codes{-8, 7, 0, 1, 2, 3, -1, -2, 4};
  quantized->codes = pack_codes({3, 3}, codes, 4);
  quantized->scales = {0.5f, 1e-30f, 3.0f};
  quantized->method = "rtn \"mse\"";
  const ValueId q = g.add_value("q", DType::f32, sizes({3, 3}));
  g.value(q).quantized = quantized;

  auto affine = std::make_shared<QuantTensor>();
  affine->scheme = parse_scheme("w3a16_g2_affine").value();
  affine->codes = pack_codes({3, 3}, std::vector<std::int8_t>{-4, 3, 0, 1, 2, 3, -1, -2, 1}, 3);
  affine->scales = {0.5f, -2.0f, 3.0f, 1.0f, 0.25f, -0.125f};
  affine->zeros = {-4, 3, 0, 1, -1, 2};
  affine->method = "gptq";
  const ValueId q3 = g.add_value("q3", DType::f32, sizes({3, 3}));
  g.value(q3).quantized = affine;

  const ValueId y = g.add_value("y", DType::f32, DeclaredShape{});
  g.value(y).activation_quant = ActivationQuant{std::numeric_limits<float>::min(), 0};
  Node conv = make_node("Conv", {x, w, b}, {y}, "conv 1");
  conv.scheme = parse_scheme("w8a8_c").value();
  conv.attributes.set("pads", std::vector<std::int64_t>{1, 1, -1, 1});
  conv.attributes.set("auto pad", std::string("NOT\tSET"));
  conv.attributes.set("alpha", 1.0f);
  conv.attributes.set("big", std::int64_t{-7});
  conv.attributes.set("floats", std::vector<float>{1.0f, 0.1f, 1e20f, -INFINITY, std::nanf("")});
  conv.attributes.set("names", std::vector<std::string>{"a", "b,]"});
  conv.attributes.set("no_ints", std::vector<std::int64_t>{});
  conv.attributes.set("no_floats", std::vector<float>{});
  conv.attributes.set("no_names", std::vector<std::string>{});
  conv.attributes.set("small", tensor_of<double>({2}, {0.1, 2.0}));
  conv.attributes.set("large", ramp({10}));
  conv.attributes.set("undefined", Tensor());
  conv.attributes.set("body", OpaqueAttribute{std::string("\0\xff", 2)});
  conv.attributes.set("long_body", OpaqueAttribute{std::string(100, 'z')});
  conv.attributes.set("no_body", OpaqueAttribute{});
  const NodeId conv_id = g.add_node(std::move(conv));

  const ValueId z = g.add_value("z", DType::f16);
  Node relu = make_node("Relu", {y}, {z}, "relu");
  relu.absorbed_by = conv_id;
  g.add_node(std::move(relu));

  const ValueId top = g.add_value("top", DType::i64, sizes({0}));
  Node custom = make_node("Top:K", {z, ValueId{}, q, q3}, {ValueId{}, top}, "relu");
  custom.domain = "com.acme";
  custom.captured = {w, odd};
  g.add_node(std::move(custom));
  const NodeId silent = g.add_node(make_node("Print", {top}, {}));
  const ValueId last = g.add_value("last", DType::boolean);
  Node end = make_node("Not_known", {}, {last});
  end.absorbed_by = silent;
  g.add_node(std::move(end));
  g.add_value("dangling", DType::u8, sizes({2}));
  g.add_output(last);
  g.add_output(y);
  return g;
}

}  // namespace ctk::graph::test
