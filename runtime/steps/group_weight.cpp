#include "runtime/steps/group_weight.h"

#include "core/dtype.h"
#include "core/mapped_pages.h"
#include "kernels/select.h"

namespace ctk::runtime {
namespace {

// [n, k] of a weight whose channels are its second dimension.
std::vector<std::int8_t> turned_codes(const QuantTensor& weight, const kernels::WgShape& shape) {
  const std::vector<std::int8_t> codes = unpack_codes(weight);
  std::vector<std::int8_t> turned(codes.size());
  for (std::size_t k = 0; k < shape.k; ++k) {
    for (std::size_t n = 0; n < shape.n; ++n) turned[n * shape.k + k] = codes[k * shape.n + n];
  }
  return turned;
}

}  // namespace

kernels::WgShape group_shape(const QuantTensor& weight) {
  const QuantScheme& scheme = weight.scheme;
  const Shape& sizes = weight.codes.shape();
  const std::size_t axis = weight.channel_axis == 0 ? 0 : 1;
  kernels::WgShape shape;
  shape.n = static_cast<std::size_t>(sizes[axis]);
  shape.k = static_cast<std::size_t>(sizes[1 - axis]);
  if (scheme.granularity == Granularity::per_group) shape.group_size = static_cast<std::size_t>(scheme.group_size);
  shape.is_affine = scheme.is_affine;
  shape.bits = scheme.weight_bits;
  return shape;
}

bool is_group_weight(const QuantTensor& weight) {
  const QuantScheme& scheme = weight.scheme;
  if (!scheme.is_integer_weight() || scheme.is_integer_activation()) return false;
  if (scheme.granularity == Granularity::per_tensor || weight.codes.shape().size() != 2) return false;
  const kernels::WgShape shape = group_shape(weight);
  return shape.k > 0 && shape.is_supported() && has_half_scales(weight);
}

Result<GroupWeight> pack_group_weight(const PlanBuilder& builder, const QuantTensor& weight, graph::NodeId node,
                                      const kernels::ConvShape& geometry, Step& step) {
  GroupWeight made{&kernels::select(kernels::gemm_wg_rows(), builder.isas()), group_shape(weight), nullptr};
  step.row = made.gemm->name;
  step.packed_bytes = made.gemm->packed_bytes(made.shape);
  const auto pack = [&](void* packed) {
    const bool is_in_order = weight.channel_axis == 0;
    const auto codes = is_in_order ? std::vector<std::int8_t>() : turned_codes(weight, made.shape);
    std::vector<std::uint16_t> scales(weight.scales.size());
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = float_to_half(weight.scales[i]);
    kernels::WgMatrix matrix;
    matrix.shape = made.shape;
    matrix.codes = codes.data();
    matrix.row_codes = made.shape.k;
    matrix.held = is_in_order ? weight.codes.data() : nullptr;
    matrix.scales = scales.data();
    matrix.zero_points = weight.zeros.data();
    kernels::pack_wg(*made.gemm, matrix, packed);
    release_pages(weight.codes.data(), weight.codes.bytes());  // of a mapped file: they are held packed now
  };
  CTK_TRY(made.packed, builder.packed(node, step, geometry, pack));
  return made;
}

}  // namespace ctk::runtime
