// Grapheme clusters: what readers take for one character.
#pragma once

#include <cstddef>
#include <string_view>

namespace ctk::data {

// Bytes of the cluster that starts at `at` < text.size(); a byte that is no UTF-8 stands alone. Extended clusters of
// Unicode's annex 29, but for two rules that only join what is 6 bytes or more anyway: flags, and Indic conjuncts.
std::size_t grapheme_length(std::string_view text, std::size_t at);

}  // namespace ctk::data
