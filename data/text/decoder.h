// Decoders: they turn tokens back into text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "data/text/json_node.h"

namespace ctk::data {

using Decoder = std::function<Status(std::vector<std::string>&)>;

// The steps of a "decoder" section of tokenizer.json, in order. Where it is absent tokens are joined by spaces.
// Errors: input (unknown type, unknown or missing option; names component and file).
Result<std::vector<Decoder>> read_decoders(const JsonNode& section);

}  // namespace ctk::data
