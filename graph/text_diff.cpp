// Compares two graphs by the lines of their text form.
#include <algorithm>
#include <unordered_map>

#include "graph/text_lines.h"

namespace ctk::graph {
namespace {

// The same names in another order: the lines alone would not show it.
void compare_order(std::vector<std::string>& out, const char* role, const Graph& before,
                   std::span<const ValueId> old_ids, const Graph& after, std::span<const ValueId> new_ids) {
  std::vector<std::string> old_names, new_names;
  for (ValueId id : old_ids) old_names.push_back(before.value(id).name);
  for (ValueId id : new_ids) new_names.push_back(after.value(id).name);
  if (old_names == new_names ||
      !std::is_permutation(old_names.begin(), old_names.end(), new_names.begin(), new_names.end())) {
    return;
  }
  const auto show = [&](const char* sign, const std::vector<std::string>& names) {
    std::string line = std::string(sign) + role;
    for (const std::string& name : names) {
      line += " %";
      text::append_word(line, name, true);
    }
    out.push_back(std::move(line));
  };
  show("- ", old_names);
  show("+ ", new_names);
}

}  // namespace

std::vector<std::string> diff_graphs(const Graph& before, const Graph& after) {
  const std::vector<text::Line> old_lines = text::lines_of(before, nullptr, true);
  const std::vector<text::Line> new_lines = text::lines_of(after, nullptr, true);
  std::unordered_map<std::string_view, std::size_t> old_places, new_places;
  for (std::size_t i = 0; i < old_lines.size(); ++i) old_places.emplace(old_lines[i].key, i);
  for (std::size_t i = 0; i < new_lines.size(); ++i) new_places.emplace(new_lines[i].key, i);

  // Old lines in their order; a new line stands before the next old line that both graphs have.
  std::vector<std::string> out;
  std::size_t next_new = 0;
  const auto show_added_up_to = [&](std::size_t end) {
    for (; next_new < end; ++next_new) {
      if (!old_places.contains(new_lines[next_new].key)) out.push_back("+ " + new_lines[next_new].text);
    }
  };
  for (const text::Line& line : old_lines) {
    const auto found = new_places.find(line.key);
    if (found == new_places.end()) {
      out.push_back("- " + line.text);
      continue;
    }
    show_added_up_to(found->second);
    const std::string& other = new_lines[found->second].text;
    if (other == line.text) continue;
    out.push_back("- " + line.text);
    out.push_back("+ " + other);
  }
  show_added_up_to(new_lines.size());
  compare_order(out, "in order", before, before.inputs(), after, after.inputs());
  compare_order(out, "out order", before, before.outputs(), after, after.outputs());
  return out;
}

}  // namespace ctk::graph
