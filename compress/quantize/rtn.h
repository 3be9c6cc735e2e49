// Round to nearest with scales fitted to squared error.
#pragma once

#include "compress/quantize/quantizers.h"

namespace ctk::quantization {

Result<WeightOutcome> quantize_rtn(const WeightRequest& request);

// The scale fit on one channel, for tests and other quantizers: see rtn.cpp. values: at least one, finite.
float fit_scale(std::span<const float> values, int bits);
// sum (v - s * clamp(round(v / s)))^2
double rounding_error(std::span<const float> values, float scale, int bits);
std::int8_t round_to_code(float value, float scale, int bits);

}  // namespace ctk::quantization
