#include "compress/patterns.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <span>

#include "compress/nearest_key.h"
#include "core/printable.h"

namespace ctk::pipeline {
namespace {

constexpr std::size_t kMostLetters = 1000;
// Steps of one match: an expression like (a+)+ would take hours on a long name.
constexpr std::uint32_t kMostSteps = 1'000'000;

bool is_expression(std::string_view pattern) {
  return pattern.starts_with("re:");
}

std::string message_of(int error) {
  PCRE2_UCHAR text[256];
  if (pcre2_get_error_message(error, text, sizeof text) < 0) return "error " + std::to_string(error);
  return reinterpret_cast<const char*>(text);
}

struct Expression {
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code{nullptr, pcre2_code_free};
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data{nullptr, pcre2_match_data_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context{nullptr, pcre2_match_context_free};
};

// ECMAScript's reading where PCRE2 has a switch for it: $ is the end only, \uXXXX a character, an unset group empty.
Result<Expression> compiled(const std::string& pattern) {
  if (pattern.size() > kMostLetters) {
    return config_error("expected a pattern of at most " + std::to_string(kMostLetters) + " letters, found " +
                        std::to_string(pattern.size()) + ". Split it into several");
  }
  int error = 0;
  PCRE2_SIZE offset = 0;
  constexpr std::uint32_t options = PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX |
                                    PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C;
  Expression made;
  made.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data() + 3), pattern.size() - 3, options, &error,
                                &offset, nullptr));
  if (!made.code) {
    return config_error("expected an ECMAScript expression after \"re:\", found \"" + printable(pattern) + "\" (" +
                        message_of(error) + ", at letter " + std::to_string(offset + 1) +
                        "). Close its brackets, and write \\. for a dot");
  }
  made.data.reset(pcre2_match_data_create_from_pattern(made.code.get(), nullptr));
  made.context.reset(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(made.context.get(), kMostSteps);
  return made;
}

Result<bool> matches_whole(const Expression& expression, const std::string& address) {
  const int found = pcre2_match(expression.code.get(), reinterpret_cast<PCRE2_SPTR>(address.data()), address.size(), 0,
                                0, expression.data.get(), expression.context.get());
  if (found >= 0 || found == PCRE2_ERROR_NOMATCH) return found >= 0;
  return config_error("expected an expression that can be matched in " + std::to_string(kMostSteps) +
                      " steps, found one that takes more on \"" + printable(address) + "\" (" + message_of(found) +
                      "). Write one without repeats inside repeats, or list the layers");
}

}  // namespace

Status check_pattern(const std::string& pattern) {
  if (!is_expression(pattern)) return {};
  const Result<Expression> expression = compiled(pattern);
  return expression ? Status{} : Status(expression.error());
}

Result<std::vector<bool>> match_patterns(const std::vector<std::string>& patterns,
                                         const std::vector<std::string>& addresses, std::string_view key) {
  std::vector<bool> picked(addresses.size(), false);
  for (const std::string& pattern : patterns) {
    bool has_match = false;
    Expression expression;
    if (is_expression(pattern)) {
      Result<Expression> made = compiled(pattern);
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
