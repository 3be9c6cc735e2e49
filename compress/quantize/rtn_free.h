// Rounding to nearest where activations are floats: fp16 scales of either sign, zero points if the scheme has them.
#pragma once

#include "compress/quantize/grid_fit.h"
#include "compress/quantize/quantizers.h"

namespace ctk::quantization {

WeightOutcome round_freely(const WeightRequest& request, GridFit fit);

}  // namespace ctk::quantization
