#include "compress/target.h"

#include "compress/config_schema.h"
#include "compress/nearest_key.h"
#include "core/file.h"

namespace ctk::pipeline {
namespace {

const KeyRow kRows[] = {
    {"name", ValueKind::text, 0, 0, "!", {}, "", "what reports call it"},
    {"kind", ValueKind::name, 0, 0, "!", NameKind::target, "", "cpu, gpu or npu"},
    {"threads", ValueKind::integer, 1, 1024, "", {}, "", "to run with"},
    {"schemes", ValueKind::scheme_list, 0, 0, "", {}, "", "it has kernels for"},
};

void check_card(const YamlNode& root, const std::string& path, CheckedValues& into) {
  if (root.kind != YamlNode::Kind::map) {
    into.problems.push_back({path + ":1", "", "expected a map with name and kind, found " + describe(root)});
    return;
  }
  std::vector<std::string_view> known;
  for (const KeyRow& row : kRows) known.push_back(row.path);
  for (const auto& [key, node] : root.entries) {
    const KeyRow* found = nullptr;
    for (const KeyRow& row : kRows) {
      if (row.path == key.text) found = &row;
    }
    if (found == nullptr) {
      into.problems.push_back({key.where, key.text,
                               "expected one of name, kind, threads, schemes; found the unknown key \"" + key.text +
                                   "\"" + did_you_mean(key.text, known)});
    } else if (into.has(key.text)) {
      into.problems.push_back(
          {key.where, key.text, "expected each key once, found \"" + key.text + "\" again. Remove one."});
    } else if (auto value = check_value(node, *found, {node.where, key.text}, into)) {
      into.values[key.text] = {std::move(*value), node.where, key.text};
    }
  }
  for (const char* required : {"name", "kind"}) {
    if (root.find(required) == nullptr) {
      into.problems.push_back(
          {path + ":1", required, std::string("expected the key \"") + required + "\", found none. Add it."});
    }
  }
}

}  // namespace

Result<TargetCard> load_target(const std::string& path) {
  CTK_TRY(const std::string text, read_text(path));
  CTK_TRY(const YamlNode root, parse_yaml(text, path));
  CheckedValues values;
  check_card(root, path, values);
  std::vector<Problem> problems = values.problems;
  problems.insert(problems.end(), values.unavailable.begin(), values.unavailable.end());
  if (!problems.empty()) {
    std::string lines;
    for (const Problem& problem : problems) lines += (lines.empty() ? "" : "\n") + to_string(problem);
    return config_error(std::move(lines));
  }
  TargetCard card;
  card.name = *values.get<std::string>("name");
  card.kind = *values.get<std::string>("kind");
  if (const auto* threads = values.get<std::int64_t>("threads")) card.threads = static_cast<int>(*threads);
  if (const auto* schemes = values.get<std::vector<std::string>>("schemes")) {
    for (const std::string& scheme : *schemes) card.schemes.push_back(*parse_scheme(scheme));
  }
  return card;
}

}  // namespace ctk::pipeline
