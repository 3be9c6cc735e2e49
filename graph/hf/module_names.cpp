// Which modules the lists of quantization_config mean.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>

#include "core/printable.h"
#include "graph/hf/quantization_config.h"

namespace ctk::graph::hf {
namespace {

constexpr std::size_t kMostLetters = 4000;
constexpr std::uint32_t kMostSteps = 100'000;  // of one match: (a+)+ would take hours on a long name

// As Python's re.match: from the start of the name, to anywhere.
Result<bool> matches(const std::string& entry, const std::string& module) {
  const auto refused = [&](const std::string& why) {
    return input_error("quantization_config: expected a regular expression after \"re:\", found \"" +
                       printable(entry.substr(0, 80)) + "\": " + why + ". Correct the file");
  };
  if (entry.size() > kMostLetters) return refused(std::to_string(entry.size()) + " letters");
  int error = 0;
  PCRE2_SIZE offset = 0;
  const std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(entry.data() + 3), entry.size() - 3,
                    PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr),
      pcre2_code_free);
  if (!code) return refused("it does not compile at letter " + std::to_string(offset + 1));
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(code.get(), nullptr), pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), kMostSteps);
  const int found = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, 0,
                                data.get(), context.get());
  if (found < 0 && found != PCRE2_ERROR_NOMATCH) return refused("it takes too many steps");
  return found >= 0;
}

bool is_pattern(const std::string& entry) {
  return entry.starts_with("re:");
}

// Lists of gptq and awq: a whole name, or parts of one between dots.
bool names_part(const std::vector<std::string>& entries, const std::string& module) {
  const std::string dotted = "." + module + ".";
  for (const std::string& entry : entries) {
    if (!entry.empty() && dotted.find("." + entry + ".") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

Result<bool> names_module(const std::vector<std::string>& entries, const std::string& module, std::string_view kind) {
  for (const std::string& entry : entries) {
    if (!is_pattern(entry)) {
      if (entry == module || entry == kind) return true;
      continue;
    }
    CTK_TRY(const bool is_it, matches(entry, module));
    if (is_it && !module.empty()) return true;
  }
  return false;
}

Result<const CodeGroup*> group_of(const QuantizationConfig& config, const std::string& module, std::string_view kind) {
  if (config.method != "compressed-tensors") {
    const bool is_coded = kind == "Linear" && !names_part(config.ignore, module);
    return is_coded ? &config.groups[0] : nullptr;
  }
  CTK_TRY(const bool is_ignored, names_module(config.ignore, module, kind));
  if (is_ignored) return nullptr;
  for (const std::string_view by : {std::string_view(), kind}) {
    for (const CodeGroup& group : config.groups) {
      CTK_TRY(const bool is_it, names_module(group.targets, module, by));
      if (is_it) return &group;
    }
  }
  return nullptr;
}

}  // namespace ctk::graph::hf
