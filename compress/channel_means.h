// Means of channels over the calibration split, for bias correction.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "graph/graph.h"

namespace ctk::pipeline {

// The samples of a split cut into at most kMost blocks of whole batches. Sums run within a block and then over blocks
// in order, so that they have the same bits wherever blocks were summed.
struct SampleBlocks {
  static constexpr std::size_t kMost = 32;
  std::size_t samples = 0, batch = 1;

  std::size_t count() const;
  std::size_t begin(std::size_t block) const;  // its first sample; that of count(): all samples
  std::size_t of(std::size_t sample) const;
};

// Mean per channel (dimension 1) of the inputs of layers. Sums in double.
class ChannelMeans {
 public:
  // `is_shared`: other ranks have other blocks; each is kept for take() then.
  ChannelMeans(const graph::Graph& graph, bool is_shared);

  // Blocks in ascending order.
  void observe(graph::ValueId id, const TensorView& data, bool channels_last, std::size_t block);
  // What was seen here, and the sums as if all of `parts` had been seen here, one after the other: parts of ascending
  // blocks. Errors: internal (no such bytes).
  std::string seen() const;
  Status take(std::span<const std::string> parts);
  nlohmann::json to_json() const;

 private:
  struct Sums {
    std::vector<std::vector<double>> blocks;  // [channels] each, in order; the first a sum of several
    std::size_t block = 0;                    // of the last one
    std::uint64_t count = 0;                  // of elements a channel
  };
  std::set<graph::ValueId> wanted_;
  const graph::Graph* graph_;
  bool is_shared_;
  std::map<std::string, Sums> sums_;
};

}  // namespace ctk::pipeline
