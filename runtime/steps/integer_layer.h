// What steps of integer layers share, whichever unit runs them.
#pragma once

#include "kernels/npu/compile.h"
#include "runtime/npu_executor.h"
#include "runtime/steps/layer.h"

namespace ctk::runtime {

// A layer on codes, before it is known what runs it.
struct IntegerLayer {
  kernels::ConvShape shape;
  std::string kind;                // of kernel: "conv_w8a8"
  std::vector<std::int32_t> bias;  // [channels], zero-point term included
  std::vector<float> multiplier;   // [channels]
  kernels::EpilogueInt epilogue;   // its pointers are bound when it runs
  std::uint8_t input_zero_point = 0;
};

class IntegerLayerStep : public Step {
 public:
  explicit IntegerLayerStep(IntegerLayer given) : layer(std::move(given)) { label = layer.kind; }

  IntegerLayer layer;
  std::shared_ptr<const void> packed;

 protected:
  kernels::EpilogueInt bound_epilogue(const RunContext& context) const {
    kernels::EpilogueInt bound = layer.epilogue;
    bound.bias = layer.bias.data();
    bound.multiplier = layer.multiplier.data();
    if (reads.size() > 1) bound.residual.data = context.at<std::uint8_t>(reads[1]);
    return bound;
  }
};

// A layer on the simulated NPU. Its counts are those of every run: they do not depend on data.
class NpuLayerStep final : public IntegerLayerStep {
 public:
  using IntegerLayerStep::IntegerLayerStep;
  Status run(const RunContext& context) override;

  kernels::npu::Program program;
  graph::ValueId output;
  std::vector<graph::ValueId> inputs;  // beside `reads`
  std::vector<graph::NodeId> absorbed;
};

// "" when the NPU of the plan runs this layer, else why not; nullopt where the plan has no NPU.
std::optional<std::string> why_not_on_npu(const PlanBuilder& builder, graph::NodeId id, const std::string& kind);
// Errors: config (a card too small for the layer).
Result<std::unique_ptr<IntegerLayerStep>> make_npu_layer(PlanBuilder& builder, const FusedLayer& fused,
                                                         IntegerLayer layer, std::span<const std::int8_t> codes);

}  // namespace ctk::runtime
