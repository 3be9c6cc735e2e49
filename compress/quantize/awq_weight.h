// Rounding whose scales are fitted to what outputs lose: what AWQ calls its search for clipping.
#pragma once

#include "compress/quantize/quantizers.h"

namespace ctk::quantization {

// request.inputs must be there. Errors: config (a scheme with one scale a tensor).
Result<WeightOutcome> quantize_by_awq(const WeightRequest& request);

}  // namespace ctk::quantization
