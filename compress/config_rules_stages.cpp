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

// Widths and schemes under one budget: what they share must be there, and no aim of widths alone beside it.
void joint(const CheckedValues& values, Problems& problems) {
  const std::string* ratios = values.get<std::string>("stages.prune.ratios");
  if (ratios == nullptr || *ratios != "joint" || std::ranges::count(values.stages, "prune") == 0) return;
  const auto problem = [&](const char* key, const std::string& text) { problems.emplace_back(key, text); };
  for (const char* key : {"stages.prune.macs", "stages.prune.pruning_ratio", "stages.prune.latency"}) {
    if (values.has(key))
      problem(key,
              "expected budget.size or budget.latency alone as the aim of ratios: joint, found this key. Remove it.");
  }
  for (const char* key : {"stages.prune.iterations", "stages.prune.blocks"}) {
    const std::int64_t* count = values.get<std::int64_t>(key);
    if (count != nullptr && *count > (std::string_view(key).ends_with("blocks") ? 0 : 1))
      problem(key, "expected one round that cuts channels alone with ratios: joint, found \"" + std::to_string(*count) +
                       "\". Remove this key.");
  }
  if (std::ranges::count(values.stages, "search") == 0)
    problem("stages.prune.ratios",
            "expected a stage \"search\", whose schemes joint chooses from, found none. Add it.");
  if (!values.has("budget.size") && !values.has("budget.latency"))
    problem("stages.prune.ratios",
            "expected budget.size or budget.latency for widths and schemes to share, found neither. Give one.");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> stage_problems(const CheckedValues& values) {
  Problems problems;
  pairs(values, problems);
  oracles(values, problems);
  joint(values, problems);
  return problems;
}

}  // namespace ctk::pipeline
