// A network run part by part over all samples at once, and the rows of a layer's input as its product sees them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "compress/quantize/value_store.h"
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

struct StreamOptions {
  std::size_t part_bytes = std::size_t{256} << 20;  // of float weights that are packed at a time, one layer at least
  bool fuse = true;
  std::shared_ptr<ValueStore> store;  // of the values; null: memory
};

// The network run up to some place: the values that later nodes still read, of every sample, and the graph's outputs.
class Stream {
 public:
  explicit Stream(const graph::Graph& graph, StreamOptions options = {});

  Status begin(const std::vector<Tensor>& inputs);
  // Runs nodes [place, next) of every sample, in parts of few weights. Integers that follow from shapes are constants
  // of a part, so samples of other sizes take another; all of them share packed weights. Errors: those of running,
  // interrupted.
  Status advance(std::size_t next);
  // Runs the rest; the outputs of one sample after another go to `visit` and are not kept.
  Status finish(const std::function<Status(std::size_t sample, std::vector<Tensor> outputs)>& visit);

  std::size_t samples() const { return samples_.size(); }
  // Wherever it lies.
  Result<Tensor> read(std::size_t sample, graph::ValueId id) const { return samples_[sample].values.at(id).read(); }
  // Of a stream whose store has no file.
  const Tensor& value(std::size_t sample, graph::ValueId id) const {
    return samples_[sample].values.at(id).in_memory();
  }
  bool has(std::size_t sample, graph::ValueId id) const { return samples_[sample].values.contains(id); }

 private:
  struct Sample {
    std::vector<Shape> shapes;  // of the graph's inputs
    std::map<graph::ValueId, ValueStore::Held> values;
  };
  using Visitor = std::function<Status(std::size_t sample, std::vector<Tensor> outputs)>;
  std::set<graph::ValueId> read_from(std::size_t place) const;
  std::size_t end_of_part(std::size_t most) const;
  Status run_part(std::size_t end, const Visitor* visit);

  const graph::Graph& graph_;
  StreamOptions options_;
  std::map<std::vector<Shape>, std::vector<graph::InferredValue>> infos_;
  std::vector<Sample> samples_;
  std::size_t place_ = 0;
};

// Bytes of all weights that are computed as floats, packed.
std::size_t float_weight_bytes(const graph::Graph& graph);

}  // namespace ctk::quantization
