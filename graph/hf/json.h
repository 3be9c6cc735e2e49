// JSON texts of checkpoints, parsed strictly. Only for .cpp files of graph/hf and readers above it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/result.h"

namespace ctk::graph::hf {

// Errors: input (no JSON object, not UTF-8, a key twice in one object, nested deeper than `max_depth`).
Result<nlohmann::json> parse_json(std::string_view text, std::size_t max_depth);
// A file of at most `max_bytes`. Errors: the same, with the path; input (larger).
Result<nlohmann::json> read_json(const std::string& path, std::size_t max_bytes, std::size_t max_depth);

// Whatever a file holds there, short enough for a message.
std::string shown(const nlohmann::json& value);

}  // namespace ctk::graph::hf
