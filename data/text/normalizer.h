// Normalizers: they rewrite a text before it is cut up.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "data/text/json_node.h"

namespace ctk::data {

using Normalizer = std::function<Status(std::string&)>;

// What normalizers may make of a text of `bytes`: a file of them can double it again and again.
constexpr std::size_t most_normalized(std::size_t bytes) {
  return 64 * bytes + (std::size_t{1} << 20);
}
Error normalized_too_long(std::size_t from, std::size_t to);

// The steps in order. Errors: input (a step's own; a text that grows beyond most_normalized()).
Status apply_normalizers(const std::vector<Normalizer>& steps, std::string& text);

// The steps of a "normalizer" section of tokenizer.json, in order; none where it is absent.
// Errors: input (unknown type, unknown or missing option; names component and file).
Result<std::vector<Normalizer>> read_normalizers(const JsonNode& section);

}  // namespace ctk::data
