// Normalizers: they rewrite a text before it is cut up.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "data/text/json_node.h"

namespace ctk::data {

using Normalizer = std::function<Status(std::string&)>;

// The steps of a "normalizer" section of tokenizer.json, in order; none where it is absent.
// Errors: input (unknown type, unknown or missing option; names component and file).
Result<std::vector<Normalizer>> read_normalizers(const JsonNode& section);

}  // namespace ctk::data
