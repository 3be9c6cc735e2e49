// The normalizer Precompiled of tokenizer.json: a character map in Base64, applied to graphemes.
#pragma once

#include <vector>

#include "data/text/normalizer.h"

namespace ctk::data {

// Errors: input (no Base64, a damaged map: names the component).
Status add_precompiled(const JsonNode& node, std::vector<Normalizer>& steps);

}  // namespace ctk::data
