// Patterns that pick layers: "layer3.0.conv1" is one address, "re:.*head" an ECMAScript expression for whole addresses
// (matched by PCRE2, in bounded time).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace ctk::pipeline {

// True when the pattern is well formed. Errors: config (names the pattern and what the expression lacks).
Status check_pattern(const std::string& pattern);

// For each address whether any pattern picks it. Every pattern must pick at least one address.
// `key` is where the patterns stand ("stages.quantize.ignore"). Errors: config (pattern, and the nearest address).
Result<std::vector<bool>> match_patterns(const std::vector<std::string>& patterns,
                                         const std::vector<std::string>& addresses, std::string_view key);

// targets (none = all) without ignore.
Result<std::vector<bool>> select_layers(const std::vector<std::string>& targets, const std::vector<std::string>& ignore,
                                        const std::vector<std::string>& addresses);

}  // namespace ctk::pipeline
