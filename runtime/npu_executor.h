// Runs a graph on the processor and a simulated NPU as two units: integer layers it has commands for go there, the rest
// stays. Outputs are the bits of CpuExecutor.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/executor.h"
#include "kernels/npu/compile.h"
#include "runtime/cpu_executor.h"

namespace ctk::runtime {

struct NpuPlacement {
  kernels::npu::Card card;
  std::optional<std::set<graph::NodeId>> nodes = std::nullopt;  // layers it is to run; none given: all it can
};

// A layer on the NPU, counted.
struct NpuLayer {
  graph::NodeId node;
  std::vector<graph::NodeId> absorbed;  // nodes its step computes too
  std::string row;
  kernels::npu::Tile tile;
  kernels::npu::Counts counts;
};

// A step that stayed on the processor.
struct NpuFallback {
  std::size_t step = 0;  // of the plan
  graph::NodeId node;    // invalid: a change of form or layout
  std::string label, reason;
};

// A value that one unit writes and the other reads; moved once however many read it.
struct NpuTransfer {
  graph::ValueId value;
  std::size_t bytes = 0;
  bool to_npu = true;
};

struct NpuReport {
  std::vector<NpuLayer> layers;
  kernels::npu::Counts total;  // of layers, one after the other
  std::vector<NpuFallback> fallbacks;
  std::vector<NpuTransfer> transfers;
  std::size_t launches = 0;  // stretches of steps that follow each other on the NPU
};

// "the NPU has no commands for conv_w4a8".
std::string no_commands_for(const std::string& label);

class NpuExecutor final : public graph::Executor {
 public:
  // Errors: those of CpuExecutor::create(), config (the card is too small for a layer: names it).
  static Result<std::unique_ptr<NpuExecutor>> create(const graph::Graph& graph, std::vector<Shape> input_shapes,
                                                     NpuPlacement placement, ExecutorOptions options = {});

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override { return steps_->run(inputs); }
  Result<std::vector<Tensor>> run_observed(std::span<const Tensor> inputs,
                                           const graph::ValueObserver& observer) override {
    return steps_->run_observed(inputs, observer);
  }

  NpuReport report() const;                 // of the current plan
  CpuExecutor& steps() { return *steps_; }  // both units' steps in the order they run in

 private:
  NpuExecutor(const graph::Graph& graph, std::unique_ptr<CpuExecutor> steps)
      : graph_(graph), steps_(std::move(steps)) {}

  const graph::Graph& graph_;
  std::unique_ptr<CpuExecutor> steps_;
};

}  // namespace ctk::runtime
