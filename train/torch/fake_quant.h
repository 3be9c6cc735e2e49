// Fake quantization: floats rounded as our kernels round, with a gradient that passes straight through.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "core/quant_tensor.h"
#include "core/result.h"

namespace ctk::train {

// The value of a noted activation: the code quantize() gives (nearest, ties to even, then saturate) times its scale.
// The gradient is 1 within the range and 0 outside. Scale and zero point stay as calibrated.
at::Tensor rounded_activation(const at::Tensor& x, const ActivationQuant& quant);
// The same with a scale [1] that is trained. With v = x / scale + zero_point its gradient is code - zero_point, less
// x / scale inside the range, or nothing inside when `clips_only`; times 1 / sqrt(elements * 255). The scale is used as
// at least kLeastRange.
inline constexpr float kLeastRange = 1e-12f;
at::Tensor rounded_activation(const at::Tensor& x, const at::Tensor& scale, std::uint8_t zero_point, bool clips_only);

// A coded weight that is trained: float weights behind the codes, and the scales that turn codes into numbers.
//   v = w / s + zero;  code = round(clamp(v, low, high));  value = (code - zero) * s
// d value / d w is 1 inside the range; d value / d s = code - zero - (w / s inside the range), multiplied by
// 1 / sqrt(elements a scale * high) so that scales move as weights do. Scales that files keep as fp16 are rounded to
// fp16 first. Zero points stay. fp16 weights have no scales: they are rounded to fp16.
// Source: Esser et al., Learned Step Size Quantization, 2020. Differs: scales start from the quantizer's.
class CodedWeight {
 public:
  // `floats`: weights the codes were made of, as far as they still round to them; empty: the codes' own values.
  CodedWeight(std::shared_ptr<const QuantTensor> source, const Tensor* floats);

  at::Tensor value(const at::Tensor& more = {}) const;  // what every reader sees; `more` is added before rounding
  // Codes and scales as they are now, "qat" as their method. Codes that no step has moved come back as they were.
  // `factor` [rows], above 0, multiplies the scales of each row; undefined: 1. Only where rows have their own scales.
  Result<std::shared_ptr<const QuantTensor>> quantized(const at::Tensor& factor = {},
                                                       const at::Tensor& more = {}) const;

  at::Tensor steps() const;  // the size of each element's scale, as it is now; not for fp16

  // Whether each index of dimension 0 has scales of its own, so that a factor a row is a factor of scales.
  bool has_row_scales() const;
  // Weights and scales of each row divided by `divisor` [rows], above 0: the same codes.
  void divide_rows(const at::Tensor& divisor);

  at::Tensor weight;  // [shape of the codes], wants its gradient
  at::Tensor scales;  // [as the source's]; undefined for fp16

 private:
  at::Tensor safe_scales() const;
  at::Tensor places(const at::Tensor& more) const;  // (w + more) / s + zero for each element

  std::shared_ptr<const QuantTensor> source_;
  at::Tensor index_;  // of each element's scale
  at::Tensor zeros_;  // of each element; undefined for symmetric codes
  at::Tensor signs_;  // of the scales, which must keep them
  double low_ = 0, high_ = 0, slope_ = 1;
  bool has_half_scales_ = false;
};

}  // namespace ctk::train
