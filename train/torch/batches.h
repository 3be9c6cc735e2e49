// Samples of a feed as tensors, in the shuffled order of an epoch, and what of them is this rank's.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "core/ranks.h"
#include "train/torch/torch_graph.h"
#include "train/trainer.h"

namespace ctk::train {

struct Example {
  std::vector<at::Tensor> inputs;
  at::Tensor labels;  // undefined: none
  at::Tensor other_labels;
  double share = 1;    // of labels, beside other_labels
  at::Tensor teacher;  // recorded rows; undefined: none
};

// A part is what is run at a time: a batch, or as many samples as the model's batch is fixed to.
class Batches {
 public:
  Batches(Feed& feed, std::uint64_t seed, Ranks& ranks) : feed_(feed), seed_(seed), ranks_(ranks) {}
  // Ranks take a slice of each part; else, where a model's batch is fixed, whole parts by turns.
  void set_part(std::size_t samples, bool is_fixed) {
    part_ = samples;
    slices_ = !is_fixed && !ranks_.is_alone();
  }
  bool slices() const { return slices_; }
  bool is_mine(std::size_t part) const;  // part of an update, from 0

  // The part from sample `first` of the epoch's order on; with read() this rank's slice of it. Errors: the feed's.
  Result<Example> read_whole(std::int64_t epoch, std::size_t first);
  Result<Example> read(std::int64_t epoch, std::size_t first);
  // What this rank's slice counts in the loss of its part, a mean over rows: its share of the rows that count. Ranks
  // ask together.
  Result<double> weight_of(const Example& example);

 private:
  std::span<const std::size_t> samples(std::int64_t epoch, std::size_t first, std::size_t count);

  Feed& feed_;
  const std::uint64_t seed_;
  Ranks& ranks_;
  std::size_t part_ = 0;
  bool slices_ = false;
  std::int64_t ordered_epoch_ = -1;
  std::vector<std::size_t> order_;
};

// Gradients and `loss`, sums over this rank's parts, become those over all ranks' parts. A parameter that no rank has a
// gradient of is left without.
Status share_gradients(std::vector<Parameter>& parameters, double& loss, Ranks& ranks);

}  // namespace ctk::train
