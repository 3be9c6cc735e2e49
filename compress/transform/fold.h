// Folds factors of a value's features into whatever makes the value: a norm's scale, a layer's output channels, a
// constant factor. The value is divided, its readers' weights are multiplied, and the network computes what it did.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compress/transform/input_groups.h"

namespace ctk::transform {

// Where the factors of one group go.
struct Fold {
  struct Edit {
    graph::NodeId node;
    std::size_t input = 0;   // a constant
    ElementMap feature_of;   // of its elements; any feature of the class
    std::size_t spread = 1;  // see scale_constant()
  };
  std::vector<Edit> edits;              // empty: nothing before the value takes them
  std::vector<std::uint32_t> class_of;  // [features]: features of one class must share a factor (heads of one group)
  std::string where;                    // "model.layers.0.input_layernorm", several joined by ", "
  std::string reason;                   // why not, when `edits` is empty: names the node it ended at
};

// Walks backwards from the group's input through what commutes with factors above 0: Relu, pools, movement, Attention's
// values, a product with another value. `infos`: shapes of every value for one sample.
// With no place to fold into, every feature is a class of its own: a Mul can have any factors.
Fold find_fold(const graph::Graph& graph, const InputGroup& group, const std::vector<graph::InferredValue>& infos);

// Multiplies the inputs' weights by `factors` [features] and divides the value: by the fold, or without one by a new
// Mul in front of the group's layers alone. factors: finite, above 0, equal within a class.
void scale_inputs(graph::Graph& graph, const InputGroup& group, const Fold& fold, std::span<const float> factors);

}  // namespace ctk::transform
