// Products with coded weights in groups, or per channel with float activations: codes stay packed, activations are
// rounded as they come in (kernels/gemm_wg).
#include "core/dtype.h"
#include "kernels/gemm_wg/gemm_wg.h"
#include "kernels/select.h"
#include "runtime/steps/layer.h"

namespace ctk::runtime {
namespace {

constexpr int kDigitsFloat = 2;  // 16 bits: 2^-15 of the largest activation of a group

class GroupLayerStep final : public Step {
 public:
  const kernels::GemmWgRow* gemm = nullptr;
  kernels::GemmWg product;
  std::shared_ptr<const void> packed;
  std::vector<float> bias;

  Status run(const RunContext& context) override {
    kernels::GemmWg bound = product;
    bound.packed = packed.get();
    bound.a = context.at<float>(reads[0]);
    bound.c = context.at<float>(writes[0]);
    bound.epilogue.bias = bias.empty() ? nullptr : bias.data();
    if (reads.size() > 1) bound.epilogue.residual = context.at<float>(reads[1]);
    kernels::gemm_wg(*gemm, bound, context.scratch);
    return {};
  }
};

kernels::WgShape shape_of(const graph::Layer& layer, const QuantScheme& scheme) {
  kernels::WgShape shape;
  shape.n = static_cast<std::size_t>(layer.channels);
  shape.k = static_cast<std::size_t>(layer.reduction);
  shape.group_size =
      scheme.granularity == Granularity::per_group ? static_cast<std::size_t>(scheme.group_size) : std::size_t{0};
  shape.is_affine = scheme.is_affine;
  shape.bits = scheme.weight_bits;
  return shape;
}

}  // namespace

bool is_group_layer(const PlanBuilder& builder, const graph::Layer& layer) {
  const auto& weight = builder.graph().value(layer.weight).quantized;
  if (weight == nullptr || !is_product(builder, layer) || !weight->scheme.is_integer_weight()) return false;
  if (weight->scheme.is_integer_activation() || weight->scheme.granularity == Granularity::per_tensor) return false;
  return layer.reduction > 0 && shape_of(layer, weight->scheme).is_supported() && has_half_scales(*weight);
}

Status make_group_layer(PlanBuilder& builder, const FusedLayer& fused, const kernels::ConvShape& shape) {
  const graph::Layer& layer = fused.layer;
  const QuantTensor& weight = *builder.graph().value(layer.weight).quantized;
  auto step = std::make_unique<GroupLayerStep>();
  step->gemm = &kernels::select(kernels::gemm_wg_rows(), builder.isas());
  step->label = "gemm_wg";
  step->row = step->gemm->name;
  kernels::GemmWg& product = step->product;
  product.m = static_cast<std::size_t>(shape.out_width);
  product.shape = shape_of(layer, weight.scheme);
  product.digits = weight.scheme.activation_bits == 8 ? 1 : kDigitsFloat;
  product.a_stride = product.shape.k;
  product.c_stride = product.shape.n;
  product.epilogue.low = fused.clamp.low;
  product.epilogue.high = fused.clamp.high;
  product.epilogue.residual_stride = product.shape.n;
  step->packed_bytes = step->gemm->packed_bytes(product.shape);
  const auto pack = [&](void* packed) {
    const std::vector<std::int8_t> codes = to_kernel_order<std::int8_t>(builder, layer, shape, unpack_codes(weight));
    std::vector<std::uint16_t> scales(weight.scales.size());
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = float_to_half(weight.scales[i]);
    kernels::WgMatrix matrix;
    matrix.shape = product.shape;
    matrix.codes = codes.data();
    matrix.row_codes = product.shape.k;
    matrix.scales = scales.data();
    matrix.zero_points = weight.zeros.data();
    kernels::pack_wg(*step->gemm, matrix, packed);
  };
  CTK_TRY(step->packed, builder.packed(layer.node, *step, packed_geometry(builder, layer, shape), pack));
  step->scratch_bytes = kernels::gemm_wg_scratch_bytes(*step->gemm, product.shape, product.digits, product.m);
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
