// Runs one operator the way executors do: infer, allocate, evaluate. Output memory starts as garbage, so that an
// element evaluate() forgets is seen.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/op.h"

namespace ctk::graph::test {

using AttributeList = std::vector<std::pair<std::string, Attribute>>;
using Ints = std::vector<std::int64_t>;

inline Tensor f32(Shape shape, std::vector<float> values) {
  return Tensor::of<float>(std::move(shape), std::span<const float>(values));
}
inline Tensor i64(Shape shape, Ints values) {
  return Tensor::of<std::int64_t>(std::move(shape), std::span<const std::int64_t>(values));
}
inline Tensor i32(Shape shape, std::vector<std::int32_t> values) {
  return Tensor::of<std::int32_t>(std::move(shape), std::span<const std::int32_t>(values));
}
inline Tensor u8(Shape shape, std::vector<std::uint8_t> values) {
  return Tensor::of<std::uint8_t>(std::move(shape), std::span<const std::uint8_t>(values));
}
inline Tensor i8(Shape shape, std::vector<std::int8_t> values) {
  return Tensor::of<std::int8_t>(std::move(shape), std::span<const std::int8_t>(values));
}
// Raw bytes under any type: bool, f16, packed 4-bit codes.
inline Tensor raw(DType dtype, Shape shape, std::vector<std::uint8_t> bytes) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape)).value();
  EXPECT_EQ(tensor.bytes(), bytes.size());
  std::memcpy(tensor.mutable_data(), bytes.data(), std::min(tensor.bytes(), bytes.size()));
  return tensor;
}
inline Tensor booleans(Shape shape, std::vector<std::uint8_t> values) {
  return raw(DType::boolean, std::move(shape), std::move(values));
}
// 1, 2, 3, ...
inline Tensor counting(Shape shape) {
  std::vector<float> values(elements(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return f32(std::move(shape), std::move(values));
}
inline Tensor filled(Shape shape, float value) {
  const std::size_t count = elements(shape);
  return f32(std::move(shape), std::vector<float>(count, value));
}
inline const Tensor kOmitted;

inline Node make_node(const std::string& type, std::size_t inputs, AttributeList attributes, std::size_t outputs = 1) {
  Node node;
  node.op_type = type;
  node.op = op_from_type("", type);
  for (std::size_t i = 0; i < inputs; ++i) node.inputs.push_back(ValueId{static_cast<std::uint32_t>(i)});
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(ValueId{static_cast<std::uint32_t>(100 + i)});
  for (auto& [name, value] : attributes) node.attributes.set(name, std::move(value));
  return node;
}

// What inference knows of a tensor: type and shape, and its contents if asked for.
inline InferInput known(const Tensor& tensor, bool with_contents = true) {
  if (!tensor.is_defined()) return {};
  InferInput input = {true, {tensor.dtype(), tensor.shape(), std::nullopt}};
  if (with_contents) input.info.constant = tensor;
  return input;
}
inline InferInput unknown(DType dtype, Shape shape) {
  return {true, {dtype, std::move(shape), std::nullopt}};
}

inline Result<std::vector<ValueInfo>> infer_op(const std::string& type, const std::vector<InferInput>& inputs,
                                               AttributeList attributes = {}, std::size_t outputs = 1) {
  const Node node = make_node(type, inputs.size(), std::move(attributes), outputs);
  return rules_of(node.op).infer(node, inputs);
}

// Contents are told to inference for i64 inputs (axes, shapes) only, as in a graph that computes on activations.
inline Result<std::vector<Tensor>> run_op(const std::string& type, const std::vector<Tensor>& inputs,
                                          AttributeList attributes = {}, std::size_t outputs = 1) {
  const Node node = make_node(type, inputs.size(), std::move(attributes), outputs);
  std::vector<InferInput> facts;
  std::vector<TensorView> views;
  for (const Tensor& input : inputs) {
    facts.push_back(known(input, input.is_defined() && input.dtype() == DType::i64));
    views.push_back(input.is_defined() ? input.view() : TensorView{});
  }
  CTK_TRY(const auto infos, rules_of(node.op).infer(node, facts));
  std::vector<Tensor> results;
  std::vector<MutableTensorView> writable;
  for (const ValueInfo& info : infos) {
    CTK_TRY(Tensor tensor, Tensor::zeros(info.dtype, info.shape));
    std::memset(tensor.mutable_data(), 0xCD, tensor.bytes());
    writable.push_back(tensor.mutable_view());
    results.push_back(std::move(tensor));
  }
  CTK_CHECK(rules_of(node.op).evaluate(node, views, writable));
  return results;
}

// The first output, or a failed test and an undefined tensor.
inline Tensor run_one(const std::string& type, const std::vector<Tensor>& inputs, AttributeList attributes = {}) {
  auto outputs = run_op(type, inputs, std::move(attributes));
  if (!outputs) {
    ADD_FAILURE() << type << ": " << outputs.error().message;
    return {};
  }
  return (*outputs)[0];
}

// Same shape, and values within `tolerance` of the expected; two NaN are equal.
inline void expect_f32(const Tensor& actual, const Shape& shape, const std::vector<float>& expected,
                       float tolerance = 0.0f) {
  ASSERT_TRUE(actual.is_defined());
  ASSERT_EQ(actual.dtype(), DType::f32);
  ASSERT_EQ(actual.shape(), shape);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float found = actual.values<float>()[i];
    if (found == expected[i] || (found != found && expected[i] != expected[i])) continue;
    EXPECT_NEAR(found, expected[i], tolerance) << "element " << i;
  }
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  if (!tensor.is_defined()) return {};
  const auto* data = static_cast<const T*>(tensor.data());
  return {data, data + tensor.size()};
}
inline std::vector<std::uint8_t> bytes_of(const Tensor& tensor) {
  if (!tensor.is_defined()) return {};
  const auto* data = static_cast<const std::uint8_t*>(tensor.data());
  return {data, data + tensor.bytes()};
}

// The call fails as unusable input, and the message holds every word.
template <class T>
void expect_input_error(const Result<T>& result, const std::vector<std::string>& words) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::input);
  for (const std::string& word : words) {
    EXPECT_NE(result.error().message.find(word), std::string::npos) << word << " in: " << result.error().message;
  }
}

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace ctk::graph::test
