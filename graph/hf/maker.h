// What the builders of checkpoints share: adds named constants and nodes to a graph. Internal to graph/hf.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace ctk::graph::hf {

// The tensor a checkpoint holds under Hugging Face's name, of exactly this shape, any float type.
// Errors: input (absent, another shape, a type we cannot compute with).
using TensorLookup = std::function<Result<Tensor>(const std::string& name, const Shape& shape)>;
// The codes a checkpoint holds of a linear layer's weight [out, in]; null: ask for its floats. Errors: input.
using CodeLookup =
    std::function<Result<std::shared_ptr<const QuantTensor>>(const std::string& module, const Shape& shape)>;

class Maker {
 public:
  Maker(Graph& graph, const TensorLookup& lookup, const CodeLookup& codes)
      : graph_(graph), lookup_(lookup), codes_(codes) {}

  // The weight as an f32 constant of that name, once. Half types are widened into memory of our own; plus_one: 1 is
  // added (norms of Gemma store w - 1).
  Result<ValueId> weight(const std::string& name, const Shape& shape, bool plus_one = false);
  // The same for matrices and tables, which are most of a model: half types stay as the file holds them
  // (graph/floats.h).
  Result<ValueId> matrix(const std::string& name, const Shape& shape);
  // A constant that no checkpoint holds.
  ValueId constant(const std::string& name, Tensor tensor) { return graph_.add_constant(name, std::move(tensor)); }

  using NodeAttributes = std::vector<std::pair<std::string, Attribute>>;
  // A node named `name` with one output "<name>.output".
  ValueId node(const std::string& name, const std::string& op, std::vector<ValueId> inputs,
               NodeAttributes attributes = {}, DType dtype = DType::f32);
  // x [T, in] * weight' + bias: Gemm on the checkpoint's [out, in] weight "<module>.weight" and "<module>.bias". A
  // weight of codes is noted as such, its scheme on the node too.
  Result<ValueId> linear(const std::string& module, ValueId x, std::int64_t out, std::int64_t in, bool has_bias);

  // Says in the graph's notes that tensors had 16 bits, if any had.
  void note_narrow();

 private:
  Result<ValueId> add(const std::string& name, const Shape& shape, bool plus_one, bool stays_narrow);

  Graph& graph_;
  const TensorLookup& lookup_;
  const CodeLookup& codes_;
  std::map<std::string, ValueId> weights_;
  std::size_t narrow_ = 0;
};

// Input `input_ids` i64 [1, sequence]; out: ids [T] and positions 0 .. T - 1, i64 [1, T].
struct TokenInput {
  ValueId ids, positions;
};
TokenInput add_token_input(Graph& graph, Maker& maker);

// A number of a configuration that sizes something: from 1 to `most`.
struct Bound {
  const char* name;
  std::int64_t value;
  std::int64_t most;
};
// Errors: input (the first that is not within: name, expected, found).
Status check_bounds(std::span<const Bound> bounds);
// What a norm adds to a mean of squares. Errors: input (not finite, negative, 1 or more).
Status check_epsilon(double epsilon);

}  // namespace ctk::graph::hf
