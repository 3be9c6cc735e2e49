// Pre-tokenizers: they cut a text into the pieces that the model codes one by one.
#pragma once

#include <functional>
#include <vector>

#include "core/result.h"
#include "data/text/json_node.h"
#include "data/text/pieces.h"

namespace ctk::data {

using PreTokenizer = std::function<Status(Pieces&)>;

// The steps of a "pre_tokenizer" section of tokenizer.json, in order; none where it is absent.
// Errors: input (unknown type, unknown or missing option; names component and file).
Result<std::vector<PreTokenizer>> read_pre_tokenizers(const JsonNode& section);

// A pattern as Split and Replace give it: {"String": "..."} or {"Regex": "..."}; appends matches in a text.
using TextFinder = std::function<Status(std::string_view, std::vector<Match>&)>;
Result<TextFinder> read_finder(const JsonNode& pattern);

}  // namespace ctk::data
