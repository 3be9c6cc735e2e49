// Integer layers that a plan gives to the simulated NPU (kernels/npu).
#include "runtime/steps/integer_layer.h"

namespace ctk::runtime {

std::optional<std::string> why_not_on_npu(const PlanBuilder& builder, graph::NodeId id, const std::string& kind) {
  const NpuPlacement* npu = builder.options().npu.get();
  if (npu == nullptr) return std::nullopt;
  if (kernels::npu::find_row(kind) == nullptr) return no_commands_for(kind);
  if (npu->nodes && !npu->nodes->contains(id)) return "placed on the processor";
  return "";
}

Result<std::unique_ptr<IntegerLayerStep>> make_npu_layer(PlanBuilder& builder, const FusedLayer& fused,
                                                         IntegerLayer layer, std::span<const std::int8_t> codes) {
  const kernels::npu::Row& row = *kernels::npu::find_row(layer.kind);
  const NpuPlacement& npu = *builder.options().npu;
  auto made = std::make_unique<NpuLayerStep>(std::move(layer));
  const IntegerLayer& own = made->layer;
  made->row = row.name;
  CTK_TRY(made->program, row.compile(npu.card, own.shape, own.epilogue, own.input_zero_point));
  made->packed_bytes = kernels::npu::constant_bytes(own.shape);
  CTK_TRY(made->packed, builder.packed(fused.layer.node, *made, own.shape, [&](void* constants) {
    kernels::npu::make_constants(own.shape, row.is_per_channel, codes.data(), own.bias.data(), own.multiplier.data(),
                                 constants);
  }));
  made->scratch_bytes = npu.card.scratchpad_bytes;
  made->inputs = {fused.layer.input};
  if (fused.residual.is_valid()) made->inputs.push_back(fused.residual);
  made->output = fused.output;
  made->absorbed = fused.absorbed;
  return std::unique_ptr<IntegerLayerStep>(std::move(made));
}

Status NpuLayerStep::run(const RunContext& context) {
  kernels::npu::Memory memory;
  // Constants and inputs are only read.
  memory.regions = {static_cast<std::byte*>(const_cast<void*>(packed.get())), context.at<std::byte>(reads[0]),
                    reads.size() > 1 ? context.at<std::byte>(reads[1]) : nullptr, context.at<std::byte>(writes[0])};
  memory.scratchpad = context.scratch;
  kernels::npu::execute(program.stream, memory);
  return {};
}

}  // namespace ctk::runtime
