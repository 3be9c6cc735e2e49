#include "compress/patterns.h"

#include <regex>
#include <span>

#include "compress/nearest_key.h"

namespace ctk::pipeline {
namespace {

constexpr std::size_t kMostLetters = 1000;  // std::regex recurses once a letter

bool is_expression(std::string_view pattern) {
  return pattern.starts_with("re:");
}

Result<std::regex> compiled(const std::string& pattern) {
  if (pattern.size() > kMostLetters) {
    return config_error("expected a pattern of at most " + std::to_string(kMostLetters) + " letters, found " +
                        std::to_string(pattern.size()) + ". Split it into several");
  }
  try {
    return std::regex(pattern.substr(3), std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    return config_error("expected an ECMAScript expression after \"re:\", found \"" + pattern + "\" (" + error.what() +
                        "). Close its brackets, and write \\. for a dot");
  }
}

Result<bool> matches_whole(const std::regex& expression, const std::string& address) {
  if (address.size() > kMostLetters) return false;
  try {
    return std::regex_match(address, expression);
  } catch (const std::regex_error& error) {
    return config_error(std::string("expected an expression that can be matched, found one too complex (") +
                        error.what() + "). Write a simpler one, or list the layers");
  }
}

}  // namespace

Status check_pattern(const std::string& pattern) {
  if (!is_expression(pattern)) return {};
  const Result<std::regex> expression = compiled(pattern);
  return expression ? Status{} : Status(expression.error());
}

Result<std::vector<bool>> match_patterns(const std::vector<std::string>& patterns,
                                         const std::vector<std::string>& addresses, std::string_view key) {
  std::vector<bool> picked(addresses.size(), false);
  for (const std::string& pattern : patterns) {
    bool has_match = false;
    std::regex expression;
    if (is_expression(pattern)) {
      Result<std::regex> made = compiled(pattern);
      if (!made) return std::move(made).error().with_context(std::string(key));
      expression = std::move(*made);
    }
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      bool is_match = addresses[i] == pattern;
      if (is_expression(pattern)) {
        Result<bool> matched = matches_whole(expression, addresses[i]);
        if (!matched) return std::move(matched).error().with_context(std::string(key));
        is_match = *matched;
      }
      if (!is_match) continue;
      picked[i] = true;
      has_match = true;
    }
    if (has_match) continue;
    const std::vector<std::string_view> known(addresses.begin(), addresses.end());
    const std::string_view best =
        nearest(is_expression(pattern) ? std::string_view(pattern).substr(3) : std::string_view(pattern), known);
    return config_error(std::string(key) + ": expected a pattern that matches a layer, found \"" + pattern +
                        "\", which matches none of " + std::to_string(addresses.size()) +
                        (best.empty() ? "" : "; the nearest layer is \"" + std::string(best) + "\"") +
                        ". See `compress check` for their names; \"re:\" begins an expression");
  }
  return picked;
}

Result<std::vector<bool>> select_layers(const std::vector<std::string>& targets, const std::vector<std::string>& ignore,
                                        const std::vector<std::string>& addresses) {
  std::vector<bool> selected(addresses.size(), true);
  if (!targets.empty()) {
    CTK_TRY(selected, match_patterns(targets, addresses, "stages.quantize.targets"));
  }
  CTK_TRY(const std::vector<bool> ignored, match_patterns(ignore, addresses, "stages.quantize.ignore"));
  for (std::size_t i = 0; i < addresses.size(); ++i) selected[i] = selected[i] && !ignored[i];
  return selected;
}

}  // namespace ctk::pipeline
