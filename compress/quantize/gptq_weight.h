// GPTQ on one layer's weight: its layout, its scheme and its inputs brought to gptq.h's plain matrices, and back.
#pragma once

#include "compress/quantize/quantizers.h"

namespace ctk::quantization {

// request.inputs must be there. Errors: config (a scheme with one scale a tensor), and those of quantize_gptq().
Result<WeightOutcome> quantize_by_gptq(const WeightRequest& request);

}  // namespace ctk::quantization
