// Round to nearest with scales fitted to squared error.
#pragma once

#include "compress/quantize/quantizers.h"

namespace ctk::quantization {

Result<WeightOutcome> quantize_rtn(const WeightRequest& request);
// The scale of the largest weight: near the speed of memory, and never better than the fit.
Result<WeightOutcome> quantize_absmax(const WeightRequest& request);

// Of a weight of this shape: one, or one a channel of each group of channels, or one a group of inputs.
std::size_t scale_count(const Shape& shape, int channel_axis, int group_count, const QuantScheme& scheme);

// As large as codes of this scheme will be, of any method, without the work of finding them: all zeros.
Result<QuantTensor> blank_codes(const Shape& shape, int channel_axis, int group_count, const QuantScheme& scheme);

// The scale fit on one channel, for tests and other quantizers: see rtn.cpp. values: at least one, finite.
float fit_scale(std::span<const float> values, int bits);
// sum (v - s * clamp(round(v / s)))^2
double rounding_error(std::span<const float> values, float scale, int bits);
std::int8_t round_to_code(float value, float scale, int bits);

}  // namespace ctk::quantization
