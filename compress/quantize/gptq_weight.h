// GPTQ on one layer's weight: its layout, its scheme and its inputs brought to gptq.h's plain matrices, and back.
#pragma once

#include "compress/quantize/grid.h"
#include "compress/quantize/quantizers.h"

namespace ctk::quantization {

// The grids a scheme of integer weights stands for.
GridForm grid_form_of(const QuantScheme& scheme);
// Only what weight_rows() needs: where the channels lie, and how many there are.
graph::Layer layer_of_weight(const WeightRequest& request);
// Codes of rows on grids as the layer stores them; without method and receipt.
WeightOutcome outcome_of_grids(const WeightRequest& request, const GridForm& form, const Grids& grids,
                               std::span<const std::int8_t> codes);

// request.inputs must be there. Errors: config (a scheme with one scale a tensor), and those of quantize_gptq().
Result<WeightOutcome> quantize_by_gptq(const WeightRequest& request);

}  // namespace ctk::quantization
