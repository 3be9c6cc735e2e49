// Integer layers: conv, product and depthwise on codes (kernels/epilogue.h states the arithmetic).
#include "runtime/steps/integer_layer.h"

#include <cstring>

#include "core/mapped_pages.h"
#include "core/parallel.h"
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

// The codes of a layer in kernel order. Read when they are first asked for, which a plan whose weights are packed
// already never does; what was read of a mapped file is let go afterwards.
class LayerCodes {
 public:
  LayerCodes(const PlanBuilder& builder, const graph::Layer& layer, const ConvShape& shape)
      : builder_(builder), layer_(layer), shape_(shape), weight_(*builder.graph().value(layer.weight).quantized) {}
  LayerCodes(const LayerCodes&) = delete;
  LayerCodes& operator=(const LayerCodes&) = delete;
  ~LayerCodes() {
    if (is_read_) release_pages(weight_.codes.data(), weight_.codes.bytes());
  }

  std::span<const std::int8_t> get() {
    if (is_read_) return ordered_.values;
    is_read_ = true;
    std::span<const std::int8_t> plain;
    if (weight_.codes.dtype() == DType::i8) {
      plain = weight_.codes.values<std::int8_t>();
    } else {
      unpacked_ = unpack_codes(weight_);
      plain = unpacked_;
    }
    ordered_ = to_kernel_order(builder_, layer_, shape_, plain);
    return ordered_.values;
  }

 private:
  const PlanBuilder& builder_;
  const graph::Layer& layer_;
  const ConvShape& shape_;
  const QuantTensor& weight_;
  std::vector<std::int8_t> unpacked_;
  KernelOrder<std::int8_t> ordered_;
  bool is_read_ = false;
};

// Two codes at a time, in 16 bits: 256 of each half cannot overflow them, and processors have wide sums of such.
std::int64_t sum_of(std::span<const std::int8_t> codes) {
  constexpr std::size_t kPairs = 256;
  std::int64_t sum = 0;
  std::size_t i = 0;
  for (; i + 2 * kPairs <= codes.size(); i += 2 * kPairs) {
    std::int16_t low = 0, high = 0;
    for (std::size_t j = 0; j < kPairs; ++j) {
      std::int16_t pair;
      std::memcpy(&pair, codes.data() + i + 2 * j, sizeof(pair));
      low = static_cast<std::int16_t>(low + (static_cast<std::int16_t>(pair << 8) >> 8));
      high = static_cast<std::int16_t>(high + (pair >> 8));
    }
    sum += low + high;
  }
  for (; i < codes.size(); ++i) sum += codes[i];
  return sum;
}

// int64 [channels]: each channel's sum of codes. Kept beside the packed weights, so that other plans need no codes.
Result<std::shared_ptr<const void>> channel_sums(const PlanBuilder& builder, const graph::Layer& layer,
                                                 LayerCodes& codes) {
  const auto channels = static_cast<std::size_t>(layer.channels);
  const auto fill = [&](void* to) {
    auto* sums = static_cast<std::int64_t*>(to);
    const std::span<const std::int8_t> all = codes.get();
    const std::size_t k = all.size() / channels;
    parallel_for(channels, 16, [&](std::size_t begin, std::size_t end) {
      for (std::size_t c = begin; c < end; ++c) sums[c] = sum_of(all.subspan(c * k, k));
    });
  };
  return builder.options().packed->get(layer.node, "sums of codes", {}, channels * sizeof(std::int64_t), fill);
}

// bias codes minus input_zero_point * sums of codes, and the multipliers to the stored output.
Status fill_constants(PlanBuilder& builder, const FusedLayer& fused, LayerCodes& codes, const QuantTensor& weight,
                      double output_scale, IntegerLayer& out) {
  const auto channels = static_cast<std::size_t>(fused.layer.channels);
  const ActivationQuant& in = builder.note(fused.layer.input);
  CTK_TRY(std::vector<float> bias, layer_bias(builder, fused.layer));
  if (bias.empty()) bias.assign(channels, 0.0f);
  out.bias = quantize_bias(bias, in.scale, weight.scales).codes;
  out.multiplier.resize(channels);
  CTK_TRY(const std::shared_ptr<const void> held, channel_sums(builder, fused.layer, codes));
  const auto* sums = static_cast<const std::int64_t*>(held.get());
  for (std::size_t c = 0; c < channels; ++c) {
    out.bias[c] = static_cast<std::int32_t>(out.bias[c] - sums[c] * in.zero_point);
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
  LayerCodes codes(builder, layer, shape);
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
  const ConvShape geometry = packed_geometry(builder, layer, shape);
  std::unique_ptr<IntegerLayerStep> step;
  const auto why_not = why_not_on_npu(builder, layer.node, common.kind);
  if (why_not && why_not->empty()) {
    CTK_TRY(step, make_npu_layer(builder, fused, std::move(common), codes.get()));
  } else if (is_depthwise) {
    auto made = std::make_unique<DepthwiseIntStep>(std::move(common));
    made->kernel = &kernels::select(kernels::depthwise_w8a8_rows(), builder.isas());
    made->row = made->kernel->name;
    made->packed_bytes = kernels::depthwise_int_packed_bytes(*made->kernel, shape);
    CTK_TRY(made->packed, builder.packed(layer.node, *made, geometry, [&](void* packed) {
      kernels::depthwise_int_pack(*made->kernel, shape, codes.get().data(), packed);
    }));
    made->scratch_bytes = kernels::depthwise_int_scratch_bytes(*made->kernel, shape, builder.options().threads);
    step = std::move(made);
  } else {
    auto made = std::make_unique<ConvIntStep>(std::move(common));
    made->gemm = &kernels::select(is_w4 ? kernels::gemm_w4a8_rows() : kernels::gemm_w8a8_rows(), builder.isas());
    made->row = made->gemm->name;
    made->packed_bytes = kernels::conv_int_packed_bytes(*made->gemm, shape);
    CTK_TRY(made->packed, builder.packed(layer.node, *made, geometry, [&](void* packed) {
      kernels::conv_int_pack(*made->gemm, shape, codes.get().data(), packed);
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
