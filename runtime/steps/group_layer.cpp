// Products with coded weights in groups, or per channel with float activations: codes stay packed, activations are
// rounded as they come in (kernels/gemm_wg).
#include "runtime/steps/group_weight.h"
#include "runtime/steps/layer.h"

namespace ctk::runtime {
namespace {

constexpr int kDigitsFloat = 2;  // 16 bits: 2^-15 of the largest activation of a group

class GroupLayerStep final : public Step {
 public:
  GroupWeight weight;
  kernels::GemmWg product;
  std::vector<float> bias;

  Status run(const RunContext& context) override {
    kernels::GemmWg bound = product;
    bound.packed = weight.packed.get();
    bound.a = context.at<float>(reads[0]);
    bound.c = context.at<float>(writes[0]);
    bound.epilogue.bias = bias.empty() ? nullptr : bias.data();
    if (reads.size() > 1) bound.epilogue.residual = context.at<float>(reads[1]);
    kernels::gemm_wg(*weight.gemm, bound, context.scratch);
    return {};
  }
};

}  // namespace

bool is_group_layer(const PlanBuilder& builder, const graph::Layer& layer) {
  const auto& weight = builder.graph().value(layer.weight).quantized;
  return weight != nullptr && is_product(builder, layer) && is_group_weight(*weight);
}

Status make_group_layer(PlanBuilder& builder, const FusedLayer& fused, const kernels::ConvShape& shape) {
  const graph::Layer& layer = fused.layer;
  const QuantTensor& weight = *builder.graph().value(layer.weight).quantized;
  auto step = std::make_unique<GroupLayerStep>();
  step->label = "gemm_wg";
  CTK_TRY(step->weight, pack_group_weight(builder, weight, layer.node, packed_geometry(builder, layer, shape), *step));
  kernels::GemmWg& product = step->product;
  product.m = static_cast<std::size_t>(shape.out_width);
  product.shape = step->weight.shape;
  product.digits = weight.scheme.activation_bits == 8 ? 1 : kDigitsFloat;
  product.a_stride = product.shape.k;
  product.c_stride = product.shape.n;
  product.epilogue.low = fused.clamp.low;
  product.epilogue.high = fused.clamp.high;
  product.epilogue.residual_stride = product.shape.n;
  step->scratch_bytes = kernels::gemm_wg_scratch_bytes(*step->weight.gemm, product.shape, product.digits, product.m);
  CTK_TRY(step->bias, layer_bias(builder, layer));
  CTK_TRY(const int x, builder.need(layer.input, Form::native, Layout::plain));
  step->reads = {x};
  if (fused.residual.is_valid()) {
    CTK_TRY(const int r, builder.need(fused.residual, Form::native, Layout::plain));
    step->reads.push_back(r);
  }
  step->writes = {builder.define(fused.output, Form::native, Layout::plain)};
  builder.add_step(std::move(step), layer.node);
  return {};
}

}  // namespace ctk::runtime
