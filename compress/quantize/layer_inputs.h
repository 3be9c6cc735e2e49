// What each layer is fed, layer after layer: in the float network, and in the network whose earlier layers are coded
// already. Every node runs once a sample and stream, whatever the number of layers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/hessian.h"
#include "core/ranks.h"
#include "data/splits.h"
#include "graph/graph.h"
#include "graph/layer.h"

namespace ctk::quantization {

struct InputReceipt;

// Second moments of the inputs of layers that read one value, [K, K] each, K the layers' reduction.
struct LayerInputs {
  explicit LayerInputs(std::size_t k) : coded(k), held_out(k), cross(k), held_out_cross(k) {}
  calibrate::Moment coded, held_out;             // sum x x^T, x as the coded network feeds it; of samples no fit sees
  calibrate::CrossMoment cross, held_out_cross;  // sum x y^T, y as the float network does

  // What a method was worth on samples held out, of the layer in work, once they are among the others; null: it is to
  // be judged.
  const InputReceipt* judged = nullptr;
  // Only the receipt is wanted where the method wins on what is held out: codes are found again once all samples count.
  // A method may then leave them out, and judge by some of the rows.
  bool judges_only = false;

  // Samples that were held out count among the others from here on, and no longer by themselves.
  void add_held_out();

  void share(const Ranks& ranks) {
    coded.share(ranks), held_out.share(ranks), cross.share(ranks), held_out_cross.share(ranks);
  }
  Status gather(Ranks& ranks) {
    CTK_CHECK(coded.gather(ranks));
    CTK_CHECK(held_out.gather(ranks));
    CTK_CHECK(cross.gather(ranks));
    return held_out_cross.gather(ranks);
  }
};

struct WalkOptions {
  // Of so many samples one is held out; with fewer samples than this the last one, with one sample none.
  std::size_t hold_out_every = 8;
  // Bytes of values that cross a layer, of all samples; those beyond it lie in a file in `folder` (empty: in memory
  // too).
  std::size_t values_in_memory = std::size_t{512} << 20;
  std::string folder;
  std::function<void(std::size_t done, std::size_t total)> progress;  // groups of layers
  // Whether the layers have been coded before: then it gives them their codes, and nothing is gathered. May be empty.
  std::function<bool(graph::Graph& coded, const std::vector<graph::Layer>& layers)> restore;
  // Samples go through the networks by turns, each rank sums its tiles of the moments: the same bits as on one.
  Ranks* ranks = &alone();
};

// Called for layers that read one value, in graph order. Gives them their codes in `coded` (Value::quantized of a
// weight of their own), through which all that follows is run. Every rank is called, and must leave the same codes.
using CodeLayers =
    std::function<Status(graph::Graph& coded, const std::vector<graph::Layer>& layers, LayerInputs& inputs)>;

// `wanted`: addresses. `original` is float; `coded` starts as a copy of it. One sample of `split` at a time, so that
// what is held are the values that cross one layer, of all samples, twice, in memory up to a bound.
// Errors: input (a sample that cannot be run, NaN at the layer that it reached first: names both), interrupted, and
// those of `code`.
Status walk_layers(const graph::Graph& original, graph::Graph& coded, const std::vector<std::string>& wanted,
                   const data::Split& split, const WalkOptions& options, const CodeLayers& code);

// A weight [N, K] as rows of output channels, whichever way the layer stores it, and back.
std::vector<float> weight_rows(const graph::Layer& layer, const Tensor& weight);
template <class T>
std::vector<T> from_rows(const graph::Layer& layer, std::span<const T> rows);

}  // namespace ctk::quantization
