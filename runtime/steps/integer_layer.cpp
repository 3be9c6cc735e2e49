// Integer layers: conv, product and depthwise on codes (kernels/epilogue.h states the arithmetic).
#include "runtime/steps/integer_layer.h"
#include "kernels/conv_w8a8/conv_w8a8.h"
#include "kernels/depthwise_w8a8/depthwise_w8a8.h"
#include "kernels/gemm_w4a8/gemm_w4a8.h"
#include "kernels/select.h"
#include "runtime/steps/layer.h"

namespace ctk::runtime {
namespace {

using kernels::ConvShape;
using kernels::EpilogueInt;

class ConvIntStep final : public IntegerLayerStep {
 public:
  using IntegerLayerStep::IntegerLayerStep;
  const kernels::GemmIntRow* gemm = nullptr;

  Status run(const RunContext& context) override {
    kernels::conv_int(*gemm, layer.shape, packed.get(), context.at<std::uint8_t>(reads[0]), layer.input_zero_point,
                      bound_epilogue(context), context.slots[writes[0]], context.scratch);
    return {};
  }
};

class DepthwiseIntStep final : public IntegerLayerStep {
 public:
  using IntegerLayerStep::IntegerLayerStep;
  const kernels::DepthwiseIntRow* kernel = nullptr;

  Status run(const RunContext& context) override {
    kernels::depthwise_int(*kernel, layer.shape, packed.get(), context.at<std::uint8_t>(reads[0]),
                           layer.input_zero_point, bound_epilogue(context), context.slots[writes[0]], context.scratch);
    return {};
  }
};

// bias codes minus input_zero_point * column sums, and the multipliers to the stored output.
Status fill_constants(PlanBuilder& builder, const FusedLayer& fused, std::span<const std::int8_t> codes,
                      const QuantTensor& weight, double output_scale, IntegerLayer& out) {
  const auto channels = static_cast<std::size_t>(fused.layer.channels);
  const ActivationQuant& in = builder.note(fused.layer.input);
  CTK_TRY(std::vector<float> bias, layer_bias(builder, fused.layer));
  if (bias.empty()) bias.assign(channels, 0.0f);
  out.bias = quantize_bias(bias, in.scale, weight.scales).codes;
  out.multiplier.resize(channels);
  const std::size_t k = codes.size() / channels;
  for (std::size_t c = 0; c < channels; ++c) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < k; ++i) sum += codes[c * k + i];
    out.bias[c] = static_cast<std::int32_t>(out.bias[c] - sum * in.zero_point);
    const float scale = weight.scales[weight.scales.size() == 1 ? 0 : c];
    out.multiplier[c] = static_cast<float>(static_cast<double>(in.scale) * static_cast<double>(scale) / output_scale);
  }
  return {};
}

void fill_epilogue(const PlanBuilder& builder, const FusedLayer& fused, IntegerLayer& to) {
  EpilogueInt& e = to.epilogue;
  e.low_f = fused.clamp.low;
  e.high_f = fused.clamp.high;
  e.to_float = !builder.has_note(fused.output);
  if (e.to_float) return;
  const ActivationQuant& out = builder.note(fused.output);
  const CodeClamp clamp = code_clamp(fused.clamp, out);
  e.zero_point = out.zero_point;
  e.low = clamp.low;
  e.high = clamp.high;
  if (!fused.residual.is_valid()) return;
  const ActivationQuant& mid = builder.note(fused.mid);
  const ActivationQuant& other = builder.note(fused.residual);
  e.residual.stride = static_cast<std::size_t>(to.shape.out_channels);
  e.residual.mid_zero_point = mid.zero_point;
  e.residual.mid_ratio = mid.scale / out.scale;
  e.residual.residual_zero_point = other.zero_point;
  e.residual.residual_ratio = other.scale / out.scale;
}

}  // namespace

Status make_integer_layer(PlanBuilder& builder, const FusedLayer& fused, const ConvShape& shape) {
  const graph::Layer& layer = fused.layer;
  if (!builder.has_note(layer.input)) {
    return internal_error("input \"" + builder.graph().value(layer.input).name + "\" has no quantization note");
  }
  const QuantTensor& weight = *builder.graph().value(layer.weight).quantized;
  const std::vector<std::int8_t> codes = to_kernel_order<std::int8_t>(builder, layer, shape, unpack_codes(weight));
  IntegerLayer common;
  common.shape = shape;
  common.input_zero_point = builder.note(layer.input).zero_point;
  double output_scale = 1.0;
  if (fused.residual.is_valid())
    output_scale = builder.note(fused.mid).scale;
  else if (builder.has_note(fused.output))
    output_scale = builder.note(fused.output).scale;
  CTK_CHECK(fill_constants(builder, fused, codes, weight, output_scale, common));
  fill_epilogue(builder, fused, common);

  const bool is_depthwise = layer.is_depthwise && shape.in_channels == shape.out_channels && !shape.is_transposed;
  const bool is_w4 = weight.scheme.weight_bits <= 4;
  common.kind = is_depthwise ? "depthwise_w8a8"
                             : std::string(is_product(builder, layer) ? "gemm_" : "conv_") + (is_w4 ? "w4a8" : "w8a8");
  std::unique_ptr<IntegerLayerStep> step;
  const auto why_not = why_not_on_npu(builder, layer.node, common.kind);
  if (why_not && why_not->empty()) {
    CTK_TRY(step, make_npu_layer(builder, fused, std::move(common), codes));
  } else if (is_depthwise) {
    auto made = std::make_unique<DepthwiseIntStep>(std::move(common));
    made->kernel = &kernels::select(kernels::depthwise_w8a8_rows(), builder.isas());
    made->row = made->kernel->name;
    made->packed_bytes = kernels::depthwise_int_packed_bytes(*made->kernel, shape);
    CTK_TRY(made->packed, builder.packed(layer.node, *made, shape, [&](void* packed) {
      kernels::depthwise_int_pack(*made->kernel, shape, codes.data(), packed);
    }));
    made->scratch_bytes = kernels::depthwise_int_scratch_bytes(*made->kernel, shape, builder.options().threads);
    step = std::move(made);
  } else {
    auto made = std::make_unique<ConvIntStep>(std::move(common));
    made->gemm = &kernels::select(is_w4 ? kernels::gemm_w4a8_rows() : kernels::gemm_w8a8_rows(), builder.isas());
    made->row = made->gemm->name;
    made->packed_bytes = kernels::conv_int_packed_bytes(*made->gemm, shape);
    CTK_TRY(made->packed, builder.packed(layer.node, *made, shape, [&](void* packed) {
      kernels::conv_int_pack(*made->gemm, shape, codes.data(), packed);
    }));
    made->scratch_bytes = kernels::conv_int_scratch_bytes(*made->gemm, shape, builder.options().threads);
    step = std::move(made);
  }

  if (why_not) step->why = *why_not;
  const Layout layout = is_product(builder, layer) ? Layout::plain : Layout::channels_last;
  CTK_TRY(const int x, builder.need(layer.input, Form::codes, layout));
  step->reads = {x};
  if (fused.residual.is_valid()) {
    CTK_TRY(const int r, builder.need(fused.residual, Form::codes, layout));
    step->reads.push_back(r);
  }
  const Form form = builder.has_note(fused.output) ? Form::codes : Form::native;
  step->writes = {builder.define(fused.output, form, layout)};
  builder.add_step(std::move(step), layer.node);
  return {};
}

}  // namespace ctk::runtime
