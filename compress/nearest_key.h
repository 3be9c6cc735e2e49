// Nearest words: what a misspelt key, name or address most likely meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ctk::pipeline {

// Edits that turn one word into the other: insert, delete, replace, swap of neighbours (each counts 1).
int edit_distance(std::string_view a, std::string_view b);

// The candidate with the fewest edits, letter case aside; ties go to the earlier one. Empty when there is none.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// True when `candidate` is near enough to `word` to be offered as what was meant: at most a third of the longer word
// and at least one letter in common, or one contains the other.
bool is_near(std::string_view word, std::string_view candidate);

// `; did you mean "x"?` when the nearest candidate is near, else the empty string.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace ctk::pipeline
