// The IR: one graph type for every model, with ONNX operator semantics (opset 24 level).
//
// A Graph is a flat list of nodes in an order where producers stand before consumers, and a list of values. Values are
// what has identity: a name, a producer, consumers, perhaps a constant, perhaps notes (quantization). Ids are stable:
// removing a node or value leaves a hole that is skipped, so ids kept elsewhere stay right until compact().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/quant_tensor.h"
#include "core/tensor.h"

namespace ctk::graph {

template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = 0xffffffffu;
  std::uint32_t index = kNone;
  bool is_valid() const { return index != kNone; }
  auto operator<=>(const Id&) const = default;
};
using ValueId = Id<struct ValueTag>;  // an invalid ValueId in a node's inputs is an omitted optional input
using NodeId = Id<struct NodeTag>;

// One row per known operator in ops.def; `unknown` is carried and written back unchanged.
enum class Op : std::uint16_t {
  unknown = 0,
#define CTK_OP(name) name,
#include "graph/ops.def"
#undef CTK_OP
};

// Bytes we carry without reading (a subgraph, a type we have no use for), in the source format's own encoding.
struct OpaqueAttribute {
  std::string bytes;
};
using Attribute = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>,
                               std::vector<std::string>, Tensor, OpaqueAttribute>;

// Attributes in the order they were read. Names are ONNX's.
class Attributes {
 public:
  const Attribute* find(std::string_view name) const;
  void set(std::string_view name, Attribute value);  // replaces in place, or appends
  void erase(std::string_view name);
  // Typed access with the operator's default; a value of another type counts as absent (the reader has checked types).
  std::int64_t get_int(std::string_view name, std::int64_t fallback) const;
  float get_float(std::string_view name, float fallback) const;
  std::string get_string(std::string_view name, std::string fallback) const;
  std::vector<std::int64_t> get_ints(std::string_view name, std::vector<std::int64_t> fallback = {}) const;
  const std::vector<std::pair<std::string, Attribute>>& items() const { return items_; }

 private:
  std::vector<std::pair<std::string, Attribute>> items_;
};

// A dimension as declared: a size, or unknown (-1) with the symbol the model gives it ("N", may be empty).
struct Dim {
  std::int64_t size = -1;
  std::string symbol;
  bool operator==(const Dim&) const = default;
};
using DeclaredShape = std::vector<Dim>;
std::string to_string(const DeclaredShape& shape);  // "[N,3,32,32]", unknown without symbol "?"

struct Value {
  std::string name;  // unique, as in the source file; the address in config and report
  DType dtype = DType::f32;
  std::optional<DeclaredShape> shape;               // declared in the source; inference never writes here
  NodeId producer;                                  // invalid for graph inputs and constants
  std::vector<NodeId> consumers;                    // once per node that reads it, in node order of insertion
  std::optional<Tensor> constant;                   // the value itself, when known before any run
  std::shared_ptr<const QuantTensor> quantized;     // note on a weight: these codes replace `constant`
  std::optional<ActivationQuant> activation_quant;  // note on an activation: it is stored as uint8 codes
  bool is_removed = false;

  bool is_constant() const { return constant.has_value() || quantized != nullptr; }
};

struct Node {
  std::string name;    // as in the source: may be empty or repeated
  std::string domain;  // "" is ONNX's own
  std::string op_type;
  Op op = Op::unknown;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  std::vector<ValueId> captured;  // outer values that an opaque subgraph reads: they count as consumed
  NodeId absorbed_by;             // fusion note: the layer that computes this node in its own last step
  QuantScheme scheme;             // quantization note on a layer; fp32 elsewhere
  bool is_removed = false;
};

class Graph {
 public:
  std::string name;
  int ir_version = 8;
  int opset = 24;                           // of the default domain, as the source file had it
  std::map<std::string, int> other_opsets;  // custom domains
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::string> reader_notes;  // what the reader decided ("default of input W was frozen")

  // --- reading
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> outputs() const { return outputs_; }
  // Live nodes, producers before consumers.
  const std::vector<NodeId>& order() const { return order_; }
  const Value& value(ValueId id) const { return values_[id.index]; }
  const Node& node(NodeId id) const { return nodes_[id.index]; }
  std::size_t value_capacity() const { return values_.size(); }  // ids run below this
  std::size_t node_capacity() const { return nodes_.size(); }
  std::optional<ValueId> find_value(std::string_view name) const;
  bool is_output(ValueId id) const;
  // The address of a node in config and report: its name when that is unique and not empty, else its first output's
  // name.
  std::string address(NodeId id) const;

  // --- building and rewriting; consumers and producers are kept in step
  Value& value(ValueId id) { return values_[id.index]; }
  Node& node(NodeId id) { return nodes_[id.index]; }
  // `name` must be unused; ask unique_name() first when inventing one.
  ValueId add_value(std::string name, DType dtype, std::optional<DeclaredShape> shape = std::nullopt);
  ValueId add_constant(std::string name, Tensor tensor);
  void add_input(ValueId id) { inputs_.push_back(id); }
  void add_output(ValueId id) { outputs_.push_back(id); }
  void remove_input(ValueId id);
  // Appends to the order, or inserts before `before`. op is set from op_type and domain.
  NodeId add_node(Node node, NodeId before = {});
  void set_input(NodeId node, std::size_t index, ValueId value);
  // Every reader of `from` (not the graph's outputs) reads `to` instead.
  void replace_uses(ValueId from, ValueId to);
  // The node that produced `from` now produces `to` (which had no producer); `from` has none any more.
  void move_producer(ValueId from, ValueId to);
  // Removes the node; its outputs lose their producer (the caller has rerouted them). Values left without producer,
  // reader, input or output role are removed by remove_dead_values().
  void remove_node(NodeId id);
  void remove_dead_values();
  // A name no value or node bears: `wish`, else `wish_2`, `wish_3`...
  std::string unique_name(const std::string& wish) const;
  // Restores producers-before-consumers order (stable). Errors: input (a cycle; names a node on it).
  Status sort();
  // Deep copy that shares constant bytes.
  Graph clone() const { return *this; }

 private:
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<NodeId> order_;
  std::vector<ValueId> inputs_, outputs_;
  std::map<std::string, ValueId, std::less<>> by_name_;
};

// Checks every structural rule above (ids in range, consumers in step, one producer, order, unique names, outputs
// defined, known operators' input counts). Errors: input (names node and value).
Status verify(const Graph& graph);

// Op from its ONNX name in the default domain; Op::unknown for anything else.
Op op_from_type(std::string_view domain, std::string_view op_type);
std::string_view name_of(Op op);

}  // namespace ctk::graph
