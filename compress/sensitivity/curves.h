// Curves of sensitivity for plots: what each layer costs switched on alone, switched off in a network that has the
// scheme everywhere, and in order from the input on; weights and activations apart.
#pragma once

#include "compress/sensitivity/metrics.h"

namespace ctk::pipeline {

// JSON: {"unit": "nats", "samples": n, "curves": [{"layer", "scheme", "on", "weights", "activations", "off",
// "accumulated"}]}, in graph order, scheme after scheme; each figure {"loss", "standard_error"} is the mean KL of the
// outputs to the float network over the score split. on: this layer alone. weights, activations: the parts of it.
// off: every layer that can take the scheme but this one. accumulated: every one up to this one.
// "activations" is null where they are rounded as the layer runs (w4a8_g32), which its weight cannot be taken out of.
// Cost: up to five passes over the score split a candidate. Errors: those of evaluating, interrupted.
Result<std::string> sensitivity_curves(const ScoreTask& task);

}  // namespace ctk::pipeline
