#include "train/torch/fake_quant.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "train/torch/tensors.h"

namespace ctk::train {
namespace {

constexpr double kLeastScale = 1e-12;  // beside which a step would turn a scale's sign
constexpr double kWithinCell = 0.499;  // how far from its code a weight may start, in steps

// x rounded, with the gradient of x.
at::Tensor straight_through(const at::Tensor& x, const at::Tensor& rounded) {
  return x + (rounded - x).detach();
}

at::Tensor to_half_and_back(const at::Tensor& x) {
  return x.to(at::kHalf).to(at::kFloat);
}

}  // namespace

at::Tensor rounded_activation(const at::Tensor& x, const ActivationQuant& quant) {
  return at::fake_quantize_per_tensor_affine(x, quant.scale, quant.zero_point, 0, 255);
}

at::Tensor rounded_activation(const at::Tensor& x, const at::Tensor& scale, std::uint8_t zero_point, bool clips_only) {
  const double slope = 1 / std::sqrt(std::max(1.0, static_cast<double>(x.numel()) * 255));
  const at::Tensor slowed = scale * slope;
  const at::Tensor s = at::clamp_min(slowed + (scale - slowed).detach(), static_cast<double>(kLeastRange));
  const at::Tensor fixed = s.detach();
  const double zero = zero_point;
  const at::Tensor place = (clips_only ? x / fixed : x / s) + zero;
  const at::Tensor inside = at::clamp(place, 0, 255);
  const at::Tensor code = straight_through(inside, at::round(inside)) - zero;
  if (!clips_only) return code * s;
  return at::where(at::logical_and(place.ge(0), place.le(255)), code * fixed, code.detach() * s);
}

CodedWeight::CodedWeight(std::shared_ptr<const QuantTensor> source, const Tensor* floats) : source_(std::move(source)) {
  const at::Tensor own = to_torch(dequantize(*source_));
  const Shape& shape = source_->codes.shape();
  const bool fits = floats != nullptr && floats->dtype() == DType::f32 && floats->shape() == shape;
  weight = fits ? to_torch(*floats) : own.clone();
  if (source_->scheme.is_integer_weight()) {
    const auto index = scale_of_elements(shape, source_->channel_axis, source_->group_count, source_->scheme);
    index_ = at::tensor(std::vector<std::int64_t>(index.begin(), index.end()), at::kLong);
    scales = at::tensor(source_->scales, at::kFloat);
    signs_ = at::sign(scales);
    has_half_scales_ = ctk::has_half_scales(*source_);
    const int bits = source_->scheme.weight_bits;
    low_ = source_->zeros.empty() ? lowest_code(bits) : -(1 << (bits - 1));
    high_ = highest_code(bits);
    const std::vector<std::int8_t> codes = unpack_codes(*source_);
    // Codes of 8 bits that were held to 7 (reduce_range) stay there.
    const bool is_reduced = bits == 8 && std::ranges::all_of(codes, [](int c) { return c >= -64 && c <= 63; });
    if (is_reduced) low_ = -64, high_ = 63;
    if (!source_->zeros.empty()) {
      zeros_ = at::tensor(std::vector<float>(source_->zeros.begin(), source_->zeros.end()), at::kFloat)
                   .index_select(0, index_)
                   .reshape(shape);
    }
    const double share =
        static_cast<double>(weight.numel()) / std::max<double>(1.0, static_cast<double>(scales.numel()));
    slope_ = 1 / std::sqrt(std::max(1.0, share * high_));
    // Floats that round to other codes than the quantizer chose start at the edge of the chosen ones.
    const at::Tensor step = scales.index_select(0, index_).reshape(shape);
    const at::Tensor away = at::clamp((weight - own) / step, -kWithinCell, kWithinCell);
    weight = own + away * step;
    scales.requires_grad_(true);
  }
  weight.requires_grad_(true);
}

at::Tensor CodedWeight::safe_scales() const {
  const at::Tensor slowed = scales * slope_;
  at::Tensor s = slowed + (scales - slowed).detach();  // the value of scales, with a smaller gradient
  s = signs_ * at::clamp_min(s * signs_, kLeastScale);
  return has_half_scales_ ? straight_through(s, to_half_and_back(s)) : s;
}

at::Tensor CodedWeight::places(const at::Tensor& more) const {
  const at::Tensor v =
      (more.defined() ? weight + more : weight) / safe_scales().index_select(0, index_).reshape(weight.sizes());
  return zeros_.defined() ? v + zeros_ : v;
}

at::Tensor CodedWeight::value(const at::Tensor& more) const {
  if (!scales.defined()) {
    const at::Tensor whole = more.defined() ? weight + more : weight;
    return straight_through(whole, to_half_and_back(whole));
  }
  const at::Tensor inside = at::clamp(places(more), low_, high_);
  at::Tensor code = straight_through(inside, at::round(inside));
  if (zeros_.defined()) code = code - zeros_;
  return code * safe_scales().index_select(0, index_).reshape(weight.sizes());
}

at::Tensor CodedWeight::steps() const {
  const at::NoGradGuard no_gradient;
  return scales.abs().index_select(0, index_).reshape(weight.sizes());
}

bool CodedWeight::has_row_scales() const {
  return scales.defined() && source_->channel_axis == 0 && scales.numel() % weight.size(0) == 0;
}

void CodedWeight::divide_rows(const at::Tensor& divisor) {
  const at::NoGradGuard no_gradient;
  weight.copy_(weight.to(at::kDouble) / by_row(divisor, weight.dim()));
  scales.copy_((scales.to(at::kDouble).reshape({weight.size(0), -1}) / divisor.reshape({-1, 1})).reshape(-1));
}

Result<std::shared_ptr<const QuantTensor>> CodedWeight::quantized(const at::Tensor& factor,
                                                                  const at::Tensor& more) const {
  const at::NoGradGuard no_gradient;
  QuantTensor result = *source_;
  result.method = "qat";
  if (!scales.defined()) {
    CTK_TRY(result.codes, from_torch((more.defined() ? weight + more : weight).to(at::kHalf)));
    return std::make_shared<const QuantTensor>(std::move(result));
  }
  const at::Tensor codes = at::round(at::clamp(places(more), low_, high_)).to(at::kChar).contiguous();
  const auto* values = codes.const_data_ptr<std::int8_t>();
  result.codes = pack_codes(source_->codes.shape(), {values, static_cast<std::size_t>(codes.numel())},
                            source_->scheme.weight_bits);
  at::Tensor s = safe_scales();
  if (factor.defined()) {
    s = (s.to(at::kDouble).reshape({weight.size(0), -1}) * factor.reshape({-1, 1})).reshape(-1).to(at::kFloat);
    if (has_half_scales_) s = to_half_and_back(s);
  }
  s = s.contiguous();
  result.scales.assign(s.const_data_ptr<float>(), s.const_data_ptr<float>() + s.numel());
  return std::make_shared<const QuantTensor>(std::move(result));
}

}  // namespace ctk::train
