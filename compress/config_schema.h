// The closed world of the pipeline file: one table with every key, and the walk that holds a YAML tree against it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compress/config.h"
#include "compress/names.h"
#include "compress/yaml_tree.h"

namespace ctk::pipeline {

enum class ValueKind {
  section,     // a map whose keys are rows of their own
  stage_list,  // a list of maps with one key each
  text,
  path,
  boolean,
  integer,
  number,
  size,
  latency,
  drop,
  name,
  name_list,  // of `names`
  scheme,
  scheme_list,
  text_list,
  number_list,
  text_map,
  target,  // "cpu" or the path of a device card
};

struct KeyRow {
  std::string_view path;  // dotted; `*` stands for each of the five splits
  ValueKind kind;
  double least, most;         // of an integer or a number
  std::string_view fallback;  // the default in YAML spelling; "" = none, "!" = the key is required
  std::optional<NameKind> names;
  std::string_view needs;  // as in NameRow
  std::string_view what;
};

std::span<const KeyRow> key_rows();
// The row of a concrete path ("data.train.path"), or null.
const KeyRow* find_row(std::string_view path);
std::string_view title_of(ValueKind kind);

using PairList = std::vector<std::pair<std::string, std::string>>;
using KeyValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, std::vector<double>,
                              PairList, Limit, MetricDrop>;

// A checked value, with where it came from. Keyed by dotted path with stage names in place of list positions.
struct CheckedValue {
  KeyValue value;
  std::string where;  // of the value; empty for a default
  std::string shown_path;
};
struct CheckedValues {
  std::map<std::string, CheckedValue> values;  // given ones and defaults of sections that are present
  std::map<std::string, std::pair<std::string, std::string>> sections;  // path -> where, shown path
  std::vector<std::string> stages;                                      // known ones, in file order
  std::vector<Problem> problems;
  std::vector<Problem> unavailable;

  bool has(const std::string& path) const { return values.contains(path); }
  bool has_section(const std::string& path) const { return sections.contains(path); }
  template <class T>
  const T* get(const std::string& path) const {
    const auto found = values.find(path);
    return found == values.end() ? nullptr : std::get_if<T>(&found->second.value);
  }
};

// Checks every key, type and range of the tree and fills in defaults. Never stops at the first problem.
CheckedValues check_tree(const YamlNode& root, const std::string& file_name);

// One scalar or list against its row; on a problem returns nothing and appends to `problems` / `unavailable`.
struct Place {
  std::string where, path;
};
std::optional<KeyValue> check_value(const YamlNode& node, const KeyRow& row, const Place& place, CheckedValues& into);

// Sets "dotted.key=value" in the tree. Problems go to the list.
void apply_override(YamlNode& root, const std::string& assignment, std::vector<Problem>& problems);

// Rules that need more than one key: stage order, what needs what, budgets that contradict each other.
void check_rules(CheckedValues& values, const std::string& file_name);

std::string canonical_text(const KeyValue& value);

}  // namespace ctk::pipeline
