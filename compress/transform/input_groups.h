// Layers that read the same features of one value: whatever scales a feature scales it for all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/layer.h"
#include "graph/shapes.h"

namespace ctk::transform {

struct InputGroup {
  graph::ValueId input;
  bool has_channels = false;  // convolutions: features are dimension 1 of the input; products: the last one
  std::size_t features = 0;
  std::vector<graph::Layer> layers;  // every layer that reads them, in graph order
  std::vector<bool> is_wanted;       // one a layer: it will be coded
  std::string reason;                // why nothing may be scaled here; empty: it may

  // The first that will be coded: its kernel says which inputs are multiplied together. Others of another kernel are
  // scaled along, and errors are not counted on them.
  const graph::Layer& sampled() const;
};

// Groups with a wanted layer, in graph order. `wanted`: addresses.
std::vector<InputGroup> input_groups(const graph::Graph& graph, const std::set<std::string>& wanted);

// Which input feature, and which output channel, an element of a layer's weight belongs to.
using ElementMap = std::function<std::size_t(std::size_t element)>;
ElementMap features_of_weight(const graph::Graph& graph, const graph::Layer& layer);
ElementMap channels_of_weight(const graph::Graph& graph, const graph::Layer& layer);

// Input `input` of a node, a constant of floats, with element i multiplied by factors[map(i)]. A constant that others
// read too is copied. A constant of one number is spread over `spread` elements first, when that is above 1.
void scale_constant(graph::Graph& graph, graph::NodeId node, std::size_t input, const ElementMap& map,
                    std::span<const float> factors, std::size_t spread = 1);

}  // namespace ctk::transform
