#include "graph/hf/maker.h"

#include "core/printable.h"

namespace ctk::graph::hf {

Result<ValueId> Maker::weight(const std::string& name, const Shape& shape, bool plus_one) {
  return add(name, shape, plus_one, false);
}

Result<ValueId> Maker::matrix(const std::string& name, const Shape& shape) {
  return add(name, shape, false, true);
}

Result<ValueId> Maker::add(const std::string& name, const Shape& shape, bool plus_one, bool stays_narrow) {
  if (const auto known = weights_.find(name); known != weights_.end()) return known->second;
  CTK_TRY(Tensor tensor, lookup_(name, shape));
  if (tensor.dtype() != DType::f32) {
    if (!is_float(tensor.dtype())) {
      return input_error("tensor \"" + printable(name) + "\": expected floats, found " +
                         std::string(name_of(tensor.dtype())) + ". Take a checkpoint that is not quantized");
    }
    const bool has_16_bits = tensor.dtype() == DType::f16 || tensor.dtype() == DType::bf16;
    stays_narrow = stays_narrow && has_16_bits;
    narrow_ += has_16_bits;
    if (!stays_narrow) {
      CTK_TRY(tensor, to_f32(tensor));
    }
  }
  if (plus_one) {
    tensor = tensor.clone();
    for (float& w : tensor.mutable_values<float>()) w += 1.0f;
  }
  const ValueId id = graph_.add_constant(name, std::move(tensor));
  graph_.value(id).dtype = DType::f32;  // graph/floats.h
  weights_.emplace(name, id);
  return id;
}

ValueId Maker::node(const std::string& name, const std::string& op, std::vector<ValueId> inputs,
                    NodeAttributes attributes, DType dtype) {
  Node node;
  node.name = name;
  node.op_type = op;
  node.inputs = std::move(inputs);
  for (auto& [key, value] : attributes) node.attributes.set(key, std::move(value));
  const ValueId output = graph_.add_value(name + ".output", dtype);
  node.outputs = {output};
  graph_.add_node(std::move(node));
  return output;
}

Result<ValueId> Maker::linear(const std::string& module, ValueId x, std::int64_t out, std::int64_t in, bool has_bias) {
  std::vector<ValueId> inputs = {x, ValueId{}};
  std::shared_ptr<const QuantTensor> codes;
  if (codes_) {
    CTK_TRY(codes, codes_(module, {out, in}));
  }
  if (codes != nullptr) {
    inputs[1] = graph_.add_value(module + ".weight", DType::f32);
    graph_.value(inputs[1]).quantized = codes;
  } else {
    CTK_TRY(inputs[1], matrix(module + ".weight", {out, in}));
  }
  if (has_bias) {
    CTK_TRY(const ValueId bias, weight(module + ".bias", {out}));
    inputs.push_back(bias);
  }
  const ValueId y = node(module, "Gemm", std::move(inputs), {{"transB", std::int64_t{1}}});
  if (codes != nullptr) graph_.node(graph_.value(y).producer).scheme = codes->scheme;
  return y;
}

TokenInput add_token_input(Graph& graph, Maker& maker) {
  const ValueId input = graph.add_value("input_ids", DType::i64, DeclaredShape{{1, ""}, {-1, "sequence"}});
  graph.add_input(input);
  const auto ints = [&](const std::string& name, std::vector<std::int64_t> values, Shape shape) {
    return maker.constant(name, Tensor::of<std::int64_t>(std::move(shape), values));
  };
  const ValueId first = ints("axis_0", {0}, {1});
  TokenInput tokens;
  tokens.ids = maker.node("tokens", "Squeeze", {input, first}, {}, DType::i64);
  const ValueId size =
      maker.node("sequence", "Shape", {input}, {{"start", std::int64_t{1}}, {"end", std::int64_t{2}}}, DType::i64);
  const ValueId count = maker.node("sequence_length", "Squeeze", {size, first}, {}, DType::i64);
  const ValueId range =
      maker.node("position", "Range", {ints("zero", {0}, {}), count, ints("one", {1}, {})}, {}, DType::i64);
  tokens.positions = maker.node("position_ids", "Unsqueeze", {range, first}, {}, DType::i64);
  return tokens;
}

void Maker::note_narrow() {
  if (narrow_ == 0) return;
  graph_.reader_notes.push_back(std::to_string(narrow_) +
                                " tensors are stored in 16 bits: matrices stay so, each widened to float32 where it is "
                                "used");
}

Status check_epsilon(double epsilon) {
  if (epsilon >= 0 && epsilon < 1) return {};  // false for NaN
  return input_error("epsilon of the norms: expected a number from 0 to below 1, found " + std::to_string(epsilon) +
                     ". Correct the configuration");
}

Status check_bounds(std::span<const Bound> bounds) {
  for (const Bound& bound : bounds) {
    if (bound.value >= 1 && bound.value <= bound.most) continue;
    return input_error(std::string(bound.name) + ": expected a number from 1 to " + std::to_string(bound.most) +
                       ", found " + std::to_string(bound.value) + ". Correct the configuration");
  }
  return {};
}

}  // namespace ctk::graph::hf
