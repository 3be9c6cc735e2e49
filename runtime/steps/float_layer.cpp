// Float layers: the same geometry and fusions as the integer ones. Weights that are held in 16 bits stay so where a
// product reads them; other coded weights, and those of depthwise layers, become floats once, while packing.
#include "core/mapped_pages.h"
#include "graph/floats.h"
#include "kernels/conv_fp32/conv_fp32.h"
#include "kernels/depthwise_fp32/depthwise_fp32.h"
#include "kernels/gemm_half/gemm_half.h"
#include "kernels/select.h"
#include "runtime/steps/layer.h"

namespace ctk::runtime {
namespace {

using kernels::ConvShape;
using kernels::EpilogueFloat;

class FloatLayerStep : public Step {
 public:
  ConvShape shape;
  std::shared_ptr<const void> packed;
  std::vector<float> bias;
  EpilogueFloat epilogue;

 protected:
  EpilogueFloat bound_epilogue(const RunContext& context) const {
    EpilogueFloat bound = epilogue;
    bound.bias = bias.empty() ? nullptr : bias.data();
    if (reads.size() > 1) bound.residual = context.at<float>(reads[1]);
    return bound;
  }
};

class ConvFloatStep final : public FloatLayerStep {
 public:
  const kernels::GemmFloatRow* gemm = nullptr;

  Status run(const RunContext& context) override {
    kernels::conv_float(*gemm, shape, packed.get(), context.at<float>(reads[0]), bound_epilogue(context),
                        context.at<float>(writes[0]), context.scratch);
    return {};
  }
};

class DepthwiseFloatStep final : public FloatLayerStep {
 public:
  const kernels::DepthwiseFloatRow* kernel = nullptr;

  Status run(const RunContext& context) override {
    kernels::depthwise_float(*kernel, shape, packed.get(), context.at<float>(reads[0]), bound_epilogue(context),
                             context.at<float>(writes[0]), context.scratch);
    return {};
  }
};

// layer_of() has seen to it that the weight is made of numbers.
Tensor float_weight(const graph::Value& value) {
  return value.quantized != nullptr ? dequantize(*value.quantized) : graph::floats_of(value);
}

// The kind of product that keeps the weight in as many bits as it has.
struct Product {
  std::span<const kernels::GemmFloatRow> rows;
  const char* form;
};

Product product_for(const graph::Value& weight) {
  const DType held = weight.quantized != nullptr ? weight.quantized->codes.dtype() : weight.constant->dtype();
  if (held == DType::f16) return {kernels::gemm_fp16_rows(), "fp16"};
  if (held == DType::bf16) return {kernels::gemm_bf16_rows(), "bf16"};
  return {kernels::gemm_fp32_rows(), "fp32"};
}

}  // namespace

Status make_float_layer(PlanBuilder& builder, const FusedLayer& fused, const ConvShape& shape) {
  const graph::Layer& layer = fused.layer;
  // Asked for only when no plan of this graph has packed them yet; what that reads of a mapped file is let go.
  const auto with_ordered = [&](auto&& pack) {
    const graph::Value& value = builder.graph().value(layer.weight);
    const Tensor weight = float_weight(value);
    pack(to_kernel_order(builder, layer, shape, weight.values<float>()).values.data());
    const Tensor& held = value.quantized != nullptr ? value.quantized->codes : *value.constant;
    release_pages(held.data(), held.bytes());
  };
  const ConvShape geometry = packed_geometry(builder, layer, shape);
  const bool is_depthwise = layer.is_depthwise && shape.in_channels == shape.out_channels && !shape.is_transposed;
  std::unique_ptr<FloatLayerStep> step;
  if (is_depthwise) {
    auto made = std::make_unique<DepthwiseFloatStep>();
    made->kernel = &kernels::select(kernels::depthwise_fp32_rows(), builder.isas());
    made->label = "depthwise_fp32";
    made->row = made->kernel->name;
    made->packed_bytes = made->kernel->packed_bytes(shape);
    CTK_TRY(made->packed, builder.packed(layer.node, *made, geometry, [&](void* packed) {
      with_ordered([&](const float* weight) { made->kernel->pack(shape, weight, packed); });
    }));
    made->scratch_bytes = made->kernel->scratch_bytes(shape) * static_cast<std::size_t>(builder.options().threads);
    step = std::move(made);
  } else {
    auto made = std::make_unique<ConvFloatStep>();
    const Product product = product_for(builder.graph().value(layer.weight));
    made->gemm = &kernels::select(product.rows, builder.isas());
    made->label = std::string(is_product(builder, layer) ? "gemm_" : "conv_") + product.form;
    made->row = made->gemm->name;
    made->packed_bytes = kernels::conv_float_packed_bytes(*made->gemm, shape);
    CTK_TRY(made->packed, builder.packed(layer.node, *made, geometry, [&](void* packed) {
      with_ordered([&](const float* weight) { kernels::conv_float_pack(*made->gemm, shape, weight, packed); });
    }));
    made->scratch_bytes = kernels::conv_float_scratch_bytes(*made->gemm, shape, builder.options().threads);
    step = std::move(made);
  }
  step->shape = shape;
  CTK_TRY(step->bias, layer_bias(builder, layer));
  step->epilogue.low = fused.clamp.low;
  step->epilogue.high = fused.clamp.high;
  step->epilogue.residual_stride = static_cast<std::size_t>(shape.out_channels);
  const Layout layout = is_product(builder, layer) ? Layout::plain : Layout::channels_last;
  CTK_TRY(const int x, builder.need(layer.input, Form::native, layout));
  step->reads = {x};
  if (fused.residual.is_valid()) {
    CTK_TRY(const int r, builder.need(fused.residual, Form::native, layout));
    step->reads.push_back(r);
  }
  step->writes = {builder.define(fused.output, Form::native, layout)};
  builder.add_step(std::move(step), layer.node);
  return {};
}

}  // namespace ctk::runtime
