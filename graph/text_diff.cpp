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

// Each "#<hash>" as "#": what a line says beside the contents of constants.
std::string without_hashes(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    out += line[i];
    if (line[i] != '#') continue;
    const std::size_t end = std::min(line.find_first_not_of("0123456789abcdef", i + 1), line.size());
    if (end - i - 1 == 16) i = end - 1;
  }
  return out;
}

// The lines of a parsed text, each as it stands there: parsing makes zeros of constants that are known by hash only.
std::vector<text::Line> lines_of_text(const Graph& graph, std::string_view given) {
  std::unordered_map<std::string, std::string_view> as_given;
  while (!given.empty()) {
    const std::size_t end = std::min(given.find('\n'), given.size());
    as_given.emplace(without_hashes(given.substr(0, end)), given.substr(0, end));
    given.remove_prefix(std::min(end + 1, given.size()));
  }
  std::vector<text::Line> lines = text::lines_of(graph, nullptr, true);
  for (text::Line& line : lines) {
    const auto found = as_given.find(without_hashes(line.text));
    if (found != as_given.end()) line.text = found->second;
  }
  return lines;
}

std::vector<std::string> diff_lines(const Graph& before, const std::vector<text::Line>& old_lines, const Graph& after,
                                    const std::vector<text::Line>& new_lines) {
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

}  // namespace

std::vector<std::string> diff_graphs(const Graph& before, const Graph& after) {
  return diff_lines(before, text::lines_of(before, nullptr, true), after, text::lines_of(after, nullptr, true));
}

Result<std::vector<std::string>> diff_texts(std::string_view before, std::string_view after) {
  auto old_graph = parse_graph(before);
  if (!old_graph) return std::move(old_graph).error().with_context("before");
  auto new_graph = parse_graph(after);
  if (!new_graph) return std::move(new_graph).error().with_context("after");
  return diff_lines(*old_graph, lines_of_text(*old_graph, before), *new_graph, lines_of_text(*new_graph, after));
}

bool is_graph_text(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') return line.substr(first).starts_with("graph ");
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
  }
  return false;
}

}  // namespace ctk::graph
