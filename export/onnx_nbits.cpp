#include "export/onnx_nbits.h"

#include <algorithm>
#include <bit>
#include <set>

#include "core/printable.h"
#include "export/nbits_blocks.h"
#include "graph/floats.h"
#include "graph/onnx/write.h"

namespace ctk::exporter {
namespace {

using graph::Attributes;
using graph::DeclaredShape;
using graph::Dim;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Value;
using graph::ValueId;

constexpr int kOpset = 23;  // the first with RMSNormalization and RotaryEmbedding
constexpr const char* kMicrosoft = "com.microsoft";

using AttributeList = std::vector<std::pair<std::string, graph::Attribute>>;

class NbitsBuilder {
 public:
  explicit NbitsBuilder(const Graph& from) : from_(from) {}

  Result<Graph> build() {
    to_.name = from_.name;
    to_.ir_version = 10;
    to_.opset = kOpset;
    to_.other_opsets = {{kMicrosoft, 1}};
    to_.metadata = from_.metadata;
    CTK_CHECK(add_inputs());
    name_outputs();
    for (NodeId id : from_.order()) CTK_CHECK(translate(id));
    if (layers_ == 0) return refuse("a decoder with Attention", "a graph without");
    for (ValueId output : from_.outputs()) {
      CTK_TRY(const ValueId made, value(output));
      to_.value(made).shape = DeclaredShape{{-1, "batch_size"}, {-1, "sequence_length"}, last_size(output)};
      outputs_.insert(outputs_.begin(), made);
    }
    for (ValueId id : inputs_) to_.add_input(id);
    for (ValueId id : outputs_) to_.add_output(id);
    to_.remove_dead_values();
    CTK_CHECK(to_.sort());
    CTK_CHECK(verify(to_));
    return std::move(to_);
  }

 private:
  static Error refuse(const std::string& expected, const std::string& found) {
    return input_error("onnx_nbits: expected " + expected + ", found " + found +
                       ". The format holds decoders as read from a checkpoint; use onnx_qdq for other networks");
  }
  Error refuse(NodeId id, const std::string& expected, const std::string& found) const {
    return input_error("onnx_nbits: \"" + printable(from_.address(id)) + "\": expected " + expected + ", found " +
                       found +
                       ". The format holds decoders as read from a checkpoint; use onnx_qdq for other networks");
  }

  Dim last_size(ValueId output) const {
    const auto& shape = from_.value(output).shape;
    return shape && !shape->empty() ? shape->back() : Dim{};
  }

  Status add_inputs() {
    if (from_.inputs().size() != 1 || from_.value(from_.inputs()[0]).dtype != DType::i64)
      return refuse("one input of token ids (i64)", std::to_string(from_.inputs().size()) + " inputs");
    const ValueId tokens = from_.inputs()[0];
    ids_ =
        to_.add_value(from_.value(tokens).name, DType::i64, DeclaredShape{{-1, "batch_size"}, {-1, "sequence_length"}});
    mask_ =
        to_.add_value("attention_mask", DType::i64, DeclaredShape{{-1, "batch_size"}, {-1, "total_sequence_length"}});
    inputs_ = {ids_, mask_};
    made_[tokens] = ids_;
    const ValueId one = ints("one", {1});
    const ValueId filled = node("", "ReduceSum", "filled", {mask_, one}, {{"keepdims", std::int64_t{0}}}, DType::i64);
    const ValueId last = node("", "Sub", "last_position", {filled, one}, {}, DType::i64);
    lengths_ = node("", "Cast", "seqlens_k", {last}, {{"to", std::int64_t{6}}}, DType::i32);
    sizes_ = node("", "Shape", "mask_shape", {mask_}, {{"start", std::int64_t{1}}}, DType::i64);
    const ValueId scalar = node("", "Squeeze", "total", {sizes_}, {}, DType::i64);
    total_ = node("", "Cast", "total_sequence_length", {scalar}, {{"to", std::int64_t{6}}}, DType::i32);
    return {};
  }

  // An output is written by the node whose rank-2 result the graph only gives a dimension more.
  void name_outputs() {
    for (ValueId output : from_.outputs()) {
      ValueId source = output;
      while (from_.value(source).producer.is_valid() && from_.node(from_.value(source).producer).op_type == "Unsqueeze")
        source = from_.node(from_.value(source).producer).inputs[0];
      output_names_[source] = from_.value(output).name;
    }
  }

  Status translate(NodeId id) {
    const Node& node = from_.node(id);
    for (ValueId input : node.inputs) {
      if (input.is_valid() && from_.value(input).activation_quant)
        return refuse(id, "activations in float", "codes of scheme " + to_string(node.scheme));
    }
    const std::string& op = node.op_type;
    if (!node.domain.empty()) return refuse(id, "an operator of a decoder", printable(node.domain + "." + op));
    if (op == "Squeeze" || op == "Unsqueeze") return drop_dimension(id);
    if (op == "Shape" || op == "Range") return skip_position(id);
    if (op == "Gather") return add_gather(id);
    if (op == "Gemm") return add_product(id);
    if (op == "Reshape") return add_reshape(id);
    if (op == "RotaryEmbedding") return add_rotary(id);
    if (op == "Attention") return add_attention(id);
    static const std::set<std::string> kSame{"Add", "Mul", "Sigmoid", "Gelu", "RMSNormalization"};
    if (!kSame.contains(op)) return refuse(id, "an operator of a decoder", printable(op));
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) {
      CTK_TRY(const ValueId made, value(input));
      inputs.push_back(made);
    }
    emit(id, "", op, std::move(inputs), node.attributes.items());
    return {};
  }

  // Positions come from the mask here: what computes them from the length of input_ids is left out.
  Status skip_position(NodeId id) {
    positions_.insert(from_.node(id).outputs[0]);
    return {};
  }

  // [T, D] and [1, T, D] of the graph are both [batch, sequence, D] here.
  Status drop_dimension(NodeId id) {
    const Node& node = from_.node(id);
    if (positions_.contains(node.inputs[0])) return skip_position(id);
    CTK_TRY(const std::vector<std::int64_t> axes, integers(id, 1));
    if (axes != std::vector<std::int64_t>{0}) return refuse(id, "axis 0", "another");
    CTK_TRY(const ValueId made, value(node.inputs[0]));
    made_[node.outputs[0]] = made;
    return {};
  }

  Status add_gather(NodeId id) {
    const Node& node = from_.node(id);
    if (node.attributes.get_int("axis", 0) != 0) return refuse(id, "axis 0", "another");
    CTK_TRY(const ValueId table, value(node.inputs[0]));
    CTK_TRY(const ValueId rows, value(node.inputs[1]));
    emit(id, "", "Gather", {table, rows}, {});
    return {};
  }

  Status add_product(NodeId id) {
    const Node& node = from_.node(id);
    const Attributes& a = node.attributes;
    if (a.get_int("transB", 0) != 1 || a.get_int("transA", 0) != 0 || a.get_float("alpha", 1) != 1 ||
        a.get_float("beta", 1) != 1 || !from_.value(node.inputs[1]).is_constant())
      return refuse(id, "x * weight' with constant weights", "a Gemm of another form");
    CTK_TRY(const ValueId x, value(node.inputs[0]));
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2].is_valid();
    ValueId bias;
    if (has_bias) {
      CTK_TRY(bias, value(node.inputs[2]));
    }
    const Value& weight = from_.value(node.inputs[1]);
    if (weight.quantized == nullptr || !weight.quantized->scheme.is_integer_weight()) {
      CTK_TRY(const ValueId stored, value(node.inputs[1]));
      const ValueId turned = this->node("", "Transpose", from_.address(id) + ".transposed", {stored},
                                        {{"perm", std::vector<std::int64_t>{1, 0}}});
      if (!has_bias) {
        emit(id, "", "MatMul", {x, turned}, {});
        return {};
      }
      emit(id, "", "Add", {this->node("", "MatMul", from_.address(id) + ".product", {x, turned}), bias}, {});
      return {};
    }
    const QuantTensor& coded = *weight.quantized;
    auto cut = nbits_blocks(coded);
    if (!cut) return std::move(cut).error().with_context("onnx_nbits: \"" + printable(from_.address(id)) + "\"");
    std::vector<ValueId> inputs = {x, constant(weight.name + "_Q", cut->codes),
                                   constant(weight.name + "_scales", cut->scales)};
    if (cut->zeros || has_bias)
      inputs.push_back(cut->zeros ? constant(weight.name + "_zero_points", *cut->zeros) : ValueId{});
    if (has_bias) inputs.insert(inputs.end(), {ValueId{}, bias});
    const Shape& shape = coded.codes.shape();
    emit(id, kMicrosoft, "MatMulNBits", std::move(inputs),
         {{"K", shape[1]},
          {"N", shape[0]},
          {"bits", std::int64_t{cut->bits}},
          {"block_size", std::int64_t{cut->block_size}},
          {"accuracy_level", std::int64_t{coded.scheme.activation_bits == 8 ? 4 : 1}}});
    return {};
  }

  // Heads apart, [0, heads, size], and together again, [1, -1, width].
  Status add_reshape(NodeId id) {
    const Node& node = from_.node(id);
    CTK_TRY(std::vector<std::int64_t> shape, integers(id, 1));
    if (shape.size() == 3 && shape[0] == 0 && shape[1] > 0) {
      shape.insert(shape.begin(), 0);
    } else if (shape.size() == 3 && shape[0] == 1 && shape[1] == -1) {
      shape = {0, 0, shape[2]};
    } else {
      return refuse(id, "heads taken apart or put together", "another shape");
    }
    CTK_TRY(const ValueId x, value(node.inputs[0]));
    emit(id, "", "Reshape", {x, ints(from_.address(id) + ".dims", std::move(shape))}, {});
    return {};
  }

  Status add_rotary(NodeId id) {
    const Node& node = from_.node(id);
    const bool is_plain = node.inputs.size() == 4 && positions_.contains(node.inputs[3]) &&
                          node.attributes.get_int("interleaved", 0) == 0 &&
                          node.attributes.get_int("rotary_embedding_dim", 0) == 0;
    if (!is_plain) return refuse(id, "halves of whole heads turned by position", "another form");
    CTK_TRY(const ValueId x, value(node.inputs[0]));
    Turn turn;
    turn.source = x;
    turn.head_size = 2 * from_.value(node.inputs[1]).constant->shape()[1];
    CTK_TRY(turn.cosines, value(node.inputs[1]));
    CTK_TRY(turn.sines, value(node.inputs[2]));
    if (turn.head_size % 16 == 0) {  // GroupQueryAttention turns it
      turns_[node.outputs[0]] = turn;
      return {};
    }
    emit(id, "", "RotaryEmbedding", {x, turn.cosines, turn.sines, positions()},
         {{"num_heads", node.attributes.get_int("num_heads", 0)}});
    head_sizes_[node.outputs[0]] = turn.head_size;
    return {};
  }

  // Of the tokens that are fed: the last columns of the running count of the mask. Padding stays at 0 or above.
  ValueId positions() {
    if (position_ids_.is_valid()) return position_ids_;
    const ValueId one = ints("one", {1}), zero = ints("zero", {0}), axis = ints("axis_of_positions", {1});
    const ValueId count = node("", "CumSum", "filled_before",
                               {mask_, to_.add_constant("axis_1", Tensor::scalar(std::int64_t{1}))}, {}, DType::i64);
    const ValueId all = node("", "Max", "positions",
                             {node("", "Sub", "positions_raw", {count, one}, {}, DType::i64), zero}, {}, DType::i64);
    const ValueId fed = node("", "Shape", "sequence", {ids_}, {{"start", std::int64_t{1}}}, DType::i64);
    const ValueId past = node("", "Sub", "past_length", {sizes_, fed}, {}, DType::i64);
    position_ids_ = node("", "Slice", "position_ids", {all, past, sizes_, axis}, {}, DType::i64);
    return position_ids_;
  }

  Status add_attention(NodeId id) {
    const Node& node = from_.node(id);
    const Attributes& a = node.attributes;
    const bool is_plain = node.inputs.size() == 3 && node.outputs.size() == 1 && a.get_int("is_causal", 0) == 1 &&
                          a.get_float("softcap", 0) == 0;
    const std::int64_t heads = a.get_int("q_num_heads", 0), kv_heads = a.get_int("kv_num_heads", 0);
    if (!is_plain || heads < 1 || kv_heads < 1) return refuse(id, "causal Attention over q, k and v", "another form");
    const auto q = turns_.find(node.inputs[0]), k = turns_.find(node.inputs[1]);
    const bool is_turned_here = q != turns_.end() && k != turns_.end();
    if ((q == turns_.end()) != (k == turns_.end())) return refuse(id, "q and k turned alike", "one of them turned");
    const auto known = head_sizes_.find(node.inputs[0]);
    if (!is_turned_here && known == head_sizes_.end()) return refuse(id, "q and k turned by position", "no rotation");
    const std::int64_t size = is_turned_here ? q->second.head_size : known->second;
    if (size % 8 != 0)
      return refuse(id, "heads of a multiple of 8, as GroupQueryAttention has them", std::to_string(size));
    std::vector<ValueId> inputs(2);
    if (is_turned_here) {
      inputs = {q->second.source, k->second.source};
    } else {
      CTK_TRY(inputs[0], value(node.inputs[0]));
      CTK_TRY(inputs[1], value(node.inputs[1]));
    }
    CTK_TRY(const ValueId v, value(node.inputs[2]));
    inputs.push_back(v);
    const std::string number = std::to_string(layers_++);
    for (const char* what : {"key", "value"}) {
      inputs.push_back(cache("past_key_values." + number + "." + what, "past_sequence_length", kv_heads, size));
      inputs_.push_back(inputs.back());
    }
    inputs.insert(inputs.end(), {lengths_, total_});
    if (is_turned_here) inputs.insert(inputs.end(), {q->second.cosines, q->second.sines});
    Node made = empty_node(from_.address(id), kMicrosoft, "GroupQueryAttention", std::move(inputs));
    made.attributes.set("num_heads", heads);
    made.attributes.set("kv_num_heads", kv_heads);
    made.attributes.set("do_rotary", std::int64_t{is_turned_here ? 1 : 0});
    if (const float scale = a.get_float("scale", 0); scale != 0) made.attributes.set("scale", scale);
    made.outputs = {to_.add_value(output_name(node.outputs[0], from_.address(id)), DType::f32)};
    for (const char* what : {"key", "value"}) {
      made.outputs.push_back(cache("present." + number + "." + what, "total_sequence_length", kv_heads, size));
      outputs_.push_back(made.outputs.back());
    }
    made_[node.outputs[0]] = made.outputs[0];
    to_.add_node(std::move(made));
    return {};
  }

  ValueId cache(const std::string& name, const char* length, std::int64_t heads, std::int64_t size) {
    return to_.add_value(to_.unique_name(name), DType::f32,
                         DeclaredShape{{-1, "batch_size"}, {heads, ""}, {-1, length}, {size, ""}});
  }

  // What a value of the source is here; constants are brought along, codes as the numbers they stand for.
  Result<ValueId> value(ValueId id) {
    if (const auto found = made_.find(id); found != made_.end()) return found->second;
    const Value& source = from_.value(id);
    if (!source.is_constant()) {
      return refuse("values of tokens, weights and what follows from them",
                    "\"" + printable(source.name) + "\", which depends on positions");
    }
    const Tensor tensor = source.quantized != nullptr ? dequantize(*source.quantized)
                          : graph::is_narrow(source)  ? graph::floats_of(source)
                                                      : *source.constant;
    return made_[id] = to_.add_constant(to_.unique_name(source.name), tensor);
  }

  Result<std::vector<std::int64_t>> integers(NodeId id, std::size_t at) const {
    const Node& node = from_.node(id);
    if (node.inputs.size() <= at || !node.inputs[at].is_valid() || !from_.value(node.inputs[at]).constant ||
        from_.value(node.inputs[at]).constant->dtype() != DType::i64)
      return refuse(id, "a constant shape or axis", "a computed one");
    const auto values = from_.value(node.inputs[at]).constant->values<std::int64_t>();
    return std::vector<std::int64_t>(values.begin(), values.end());
  }

  ValueId constant(const std::string& wish, const Tensor& tensor) {
    return to_.add_constant(to_.unique_name(wish), tensor);
  }
  ValueId ints(const std::string& name, const std::vector<std::int64_t>& values) {
    if (const auto found = to_.find_value(name)) return *found;
    return to_.add_constant(name, Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
  }

  Node empty_node(const std::string& name, const std::string& domain, const std::string& op,
                  std::vector<ValueId> inputs) const {
    Node made;
    made.name = to_.unique_name(name);
    made.domain = domain;
    made.op_type = op;
    made.inputs = std::move(inputs);
    return made;
  }
  ValueId node(const std::string& domain, const std::string& op, const std::string& name, std::vector<ValueId> inputs,
               const AttributeList& attributes = {}, DType dtype = DType::f32) {
    Node made = empty_node(name, domain, op, std::move(inputs));
    for (const auto& [key, attribute] : attributes) made.attributes.set(key, attribute);
    const ValueId output = to_.add_value(to_.unique_name(name + ".output"), dtype);
    made.outputs = {output};
    to_.add_node(std::move(made));
    return output;
  }
  // The node that stands for `id`.
  void emit(NodeId id, const std::string& domain, const std::string& op, std::vector<ValueId> inputs,
            const AttributeList& attributes) {
    Node made = empty_node(from_.address(id), domain, op, std::move(inputs));
    for (const auto& [key, attribute] : attributes) made.attributes.set(key, attribute);
    const ValueId source = from_.node(id).outputs[0];
    made.outputs = {to_.add_value(output_name(source, from_.address(id)), from_.value(source).dtype)};
    made_[source] = made.outputs[0];
    to_.add_node(std::move(made));
  }
  std::string output_name(ValueId source, const std::string& node) const {
    const auto named = output_names_.find(source);
    return to_.unique_name(named == output_names_.end() ? node + ".output" : named->second);
  }

  // A rotation left to the attention behind it.
  struct Turn {
    ValueId source, cosines, sines;
    std::int64_t head_size = 0;
  };

  const Graph& from_;
  Graph to_;
  std::map<ValueId, ValueId> made_;
  std::map<ValueId, Turn> turns_;
  std::map<ValueId, std::int64_t> head_sizes_;
  std::map<ValueId, std::string> output_names_;
  std::set<ValueId> positions_;
  std::vector<ValueId> inputs_, outputs_;
  ValueId ids_, mask_, lengths_, sizes_, total_, position_ids_;
  int layers_ = 0;
};

}  // namespace

Result<Graph> to_nbits(const Graph& graph) {
  return NbitsBuilder(graph).build();
}

Result<std::string> onnx_nbits_of(const Graph& graph) {
  CTK_TRY(const Graph nbits, to_nbits(graph));
  return graph::onnx::write_model_bytes(nbits, {});
}

}  // namespace ctk::exporter
