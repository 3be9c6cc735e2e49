// Runs a graph on the CPU by plans: one per set of input shapes, made on first use and kept.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/executor.h"
#include "runtime/plan.h"

namespace ctk::runtime {

struct ExecutorOptions {
  std::vector<graph::ValueId> keep;  // values an observer may ask for
  bool fuse = true;
  std::shared_ptr<PackedWeights> packed = nullptr;    // of the same graph, to share with other executors; null: its own
  std::shared_ptr<KvCaches> caches = nullptr;         // as PlanOptions::caches
  std::shared_ptr<const NpuPlacement> npu = nullptr;  // as PlanOptions::npu
};

class CpuExecutor final : public graph::Executor {
 public:
  // Plans for `input_shapes` at once, so that errors come now. The graph must outlive the executor.
  // Errors: those of make_plan().
  static Result<std::unique_ptr<CpuExecutor>> create(const graph::Graph& graph, std::vector<Shape> input_shapes,
                                                     ExecutorOptions options = {});
  ~CpuExecutor() override;

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override;
  // The observer sees the values of ExecutorOptions::keep, graph inputs among them if asked for.
  Result<std::vector<Tensor>> run_observed(std::span<const Tensor> inputs,
                                           const graph::ValueObserver& observer) override;

  // The timing loop's entry: runs the current plan on what its input slots hold. Allocates nothing. Steps may write
  // over the inputs once these have been read: restore_inputs() brings back those of the last run, or zeros.
  Status run_steps();
  void restore_inputs();
  const Plan& plan() const;
  const RunContext& context() const;  // for timing single steps
  // Bytes this executor holds for activations and scratch, and for packed weights, under the current plan.
  std::size_t activation_bytes() const;
  std::size_t packed_bytes() const;

 private:
  struct Prepared;
  CpuExecutor(const graph::Graph& graph, ExecutorOptions options);
  Result<Prepared*> prepare(std::span<const Shape> shapes);

  const graph::Graph& graph_;
  ExecutorOptions options_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
  Prepared* current_ = nullptr;
};

}  // namespace ctk::runtime
