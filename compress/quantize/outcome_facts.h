// What is known of codes beside the codes, as it goes into files and to other ranks.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "compress/quantize/quantizers.h"

namespace ctk::quantization {

// All of an outcome but its tensor: errors, raised scales, the receipt.
nlohmann::json facts_of(const WeightOutcome& outcome);
// Facts that are not there are 0, the receipt none.
void take_facts(const nlohmann::json& facts, WeightOutcome& outcome);

}  // namespace ctk::quantization
