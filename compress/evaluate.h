// Runs a graph over a split with our executor: batch by batch, never the whole set in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/tensor.h"
#include "data/metric.h"
#include "data/splits.h"
#include "graph/executor.h"
#include "graph/graph.h"
#include "runtime/cpu_executor.h"

namespace ctk::pipeline {

// Where the model leaves the batch open: at most so many samples at a time, fewer where their activations are large.
inline constexpr std::size_t kMostBatch = 32;
inline constexpr std::size_t kBatchBytes = std::size_t{24} << 20;  // of three times the largest value

// Samples one run takes: the model's fixed leading dimension, or `fallback`.
std::size_t fixed_batch(const graph::Graph& graph, std::size_t fallback);
// Samples of `split` at a time: fixed by the model, or within the bounds above. Never 0.
std::size_t batch_size(const graph::Graph& graph, const data::Split& split);

// Called after each batch: the graph's outputs, the batch, and the index of its first sample in the split.
using BatchVisitor =
    std::function<Status(const std::vector<Tensor>& outputs, const data::Batch& batch, std::size_t first)>;

// Samples in order. `observer` (may be empty) sees every value as it is computed; `keep` are values that must survive
// fusion so that it can. Where the model leaves sizes free, samples of unequal shapes run one by one. `step` samples at
// a time, 0: batch_size() of them.
// Errors: input (names the first sample of the batch), interrupted.
Status for_each_batch(const graph::Graph& graph, const data::Split& split, const graph::ValueObserver& observer,
                      const std::vector<graph::ValueId>& keep, const BatchVisitor& each, std::size_t step = 0);

// First outputs of a graph over a split, one tensor a batch: what another graph is compared with. A vocabulary makes
// them large: beyond kMostInMemory they go to a file without a name in `folder`, from which they are mapped.
class OutputCache {
 public:
  static constexpr std::size_t kMostInMemory = std::size_t{512} << 20;

  explicit OutputCache(std::string folder) : folder_(std::move(folder)) {}
  // Errors: input (the file cannot be made or written).
  Status add(const Tensor& output);
  const Tensor& batch(std::size_t number) const { return batches_[number]; }
  std::size_t count() const { return batches_.size(); }

 private:
  std::string folder_;
  std::vector<Tensor> batches_;
  std::size_t in_memory_ = 0, file_end_ = 0;
  std::shared_ptr<const int> file_;
};
Result<OutputCache> collect_outputs(const graph::Graph& graph, const data::Split& split, const std::string& folder);

struct Evaluation {
  data::MetricValue metric;                  // of the metric asked for
  data::MetricValue agreement, kl, sqnr_db;  // with a reference
};
// `metric` may be empty: only the comparison with `reference` then. `kept` (may be null) receives the outputs.
// Errors: config (unknown metric), input (labels missing or outside the classes, and those of for_each_batch).
Result<Evaluation> evaluate(const graph::Graph& graph, const data::Split& split, const std::string& metric,
                            const OutputCache* reference = nullptr, OutputCache* kept = nullptr);

}  // namespace ctk::pipeline
