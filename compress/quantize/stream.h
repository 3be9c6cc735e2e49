// A network run part by part over all samples at once, and the rows of a layer's input as its product sees them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "graph/layer.h"
#include "graph/shapes.h"

namespace ctk::quantization {

// Whether input_rows() knows the layer: products, and convolutions without groups.
bool has_rows(const graph::Graph& graph, const graph::Layer& layer);
bool is_product(const graph::Graph& graph, const graph::Layer& layer);
// A convolution's patches, one for each output place: [places, reduction]; the first of every so many.
std::vector<float> patches(const graph::Graph& graph, const graph::Layer& layer, const Tensor& input,
                           std::size_t every = 1);

// The network run up to some place: the values that later nodes still read, of every sample.
class Stream {
 public:
  explicit Stream(const graph::Graph& graph) : graph_(graph) {}

  Status begin(const std::vector<Tensor>& inputs);
  // Runs nodes [place, next) of every sample. Integers that follow from shapes are constants of a part, so samples of
  // other sizes take another; all of them share packed weights. Errors: those of running, interrupted.
  Status advance(std::size_t next);

  std::size_t samples() const { return samples_.size(); }
  const Tensor& value(std::size_t sample, graph::ValueId id) const { return samples_[sample].values.at(id); }
  bool has(std::size_t sample, graph::ValueId id) const { return samples_[sample].values.contains(id); }

 private:
  struct Sample {
    std::vector<Shape> shapes;  // of the graph's inputs
    std::map<graph::ValueId, Tensor> values;
  };
  std::set<graph::ValueId> read_from(std::size_t place) const;

  const graph::Graph& graph_;
  std::map<std::vector<Shape>, std::vector<graph::InferredValue>> infos_;
  std::vector<Sample> samples_;
  std::size_t place_ = 0;
};

}  // namespace ctk::quantization
