#include "compress/config_rules_stages.h"

#include <algorithm>

#include "compress/names.h"

namespace ctk::pipeline {
namespace {

using Problems = std::vector<std::pair<std::string, std::string>>;

void pairs(const CheckedValues& values, Problems& problems) {
  const std::int64_t* pairs = values.get<std::int64_t>("stages.search.pairs");
  const std::string* metric = values.get<std::string>("stages.sensitivity.metric");
  if (pairs == nullptr || *pairs == 0 || metric == nullptr || *metric == "kl" || *metric == "fisher") return;
  problems.emplace_back("stages.search.pairs",
                        "expected scores in nats beside it, by kl or fisher, found stages.sensitivity.metric \"" +
                            *metric + "\". Name one of the two, or remove pairs.");
}

void oracles(const CheckedValues& values, Problems& problems) {
  const auto* against = values.get<std::vector<std::string>>("stages.validate.against");
  const auto has_stage = [&](const char* name) { return std::ranges::count(values.stages, name) != 0; };
  if (against == nullptr || !has_stage("validate")) return;
  const auto* formats = values.get<std::vector<std::string>>("stages.export.formats");
  if (formats == nullptr && has_stage("export")) return;  // wrong or missing: told already
  for (const std::string& oracle : *against) {
    const auto wanted = formats_for_oracle(oracle);
    const auto is_written = [&](std::string_view format) { return std::ranges::count(*formats, format) != 0; };
    if (wanted.empty() || (formats != nullptr && std::ranges::any_of(wanted, is_written))) continue;
    problems.emplace_back("stages.validate.against", "expected an exported file that " + oracle +
                                                         " reads, found none. Add " + std::string(wanted.front()) +
                                                         " to stages.export.formats.");
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> stage_problems(const CheckedValues& values) {
  Problems problems;
  pairs(values, problems);
  oracles(values, problems);
  return problems;
}

}  // namespace ctk::pipeline
