// `--set dotted.key=value`: written into the YAML tree before anything is checked, so that the same rules hold.
#include "compress/config_schema.h"
#include "compress/nearest_key.h"

namespace ctk::pipeline {
namespace {

// "stages[1].search.solver" -> stages, search, solver.
std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> segments(1);
  bool in_brackets = false;
  for (const char letter : path) {
    if (letter == '[' || letter == ']') {
      in_brackets = letter == '[';
    } else if (letter == '.' && !in_brackets) {
      segments.emplace_back();
    } else if (!in_brackets) {
      segments.back() += letter;
    }
  }
  return segments;
}

// "stages[1].search.solver" -> "1"; empty without brackets.
std::string position_in(const std::string& path) {
  const std::size_t open = path.find('['), close = path.find(']');
  return open == std::string::npos || close < open ? "" : path.substr(open + 1, close - open - 1);
}

bool stands_at(const YamlNode& list, const std::string& stage, const std::string& position) {
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (std::to_string(i) != position) continue;
    return list.items[i].text == stage || list.items[i].find(stage) != nullptr;
  }
  return false;
}

void set_where(YamlNode& node, const std::string& where) {
  node.where = where;
  for (YamlNode& item : node.items) set_where(item, where);
  for (auto& [key, child] : node.entries) {
    key.where = where;
    set_where(child, where);
  }
}

// The body of the stage `name` in a list of stages, or null.
YamlNode* find_stage(YamlNode& list, const std::string& name) {
  for (YamlNode& item : list.items) {
    if (item.kind == YamlNode::Kind::scalar && item.text == name) {
      YamlNode expanded;
      expanded.kind = YamlNode::Kind::map;
      expanded.where = item.where;
      expanded.entries.emplace_back(YamlNode::Key{name, item.where}, YamlNode{});
      expanded.entries.front().second.where = item.where;
      item = std::move(expanded);
    }
    if (YamlNode* body = item.find(name)) return body;
  }
  return nullptr;
}

}  // namespace

void apply_override(YamlNode& root, const std::string& assignment, std::vector<Problem>& problems) {
  const std::size_t equals = assignment.find('=');
  const std::string path = assignment.substr(0, equals);
  const std::string where = "--set " + path;
  if (equals == std::string::npos || path.empty()) {
    problems.push_back({"--set", "", "expected key=value, found \"" + assignment + "\". Write --set key=value."});
    return;
  }
  Result<YamlNode> value = parse_yaml(assignment.substr(equals + 1), where);
  if (!value) {
    problems.push_back(
        {where, "",
         "expected a YAML value, found \"" + assignment.substr(equals + 1) + "\". Close its brackets and quotes."});
    return;
  }
  if (value->kind == YamlNode::Kind::null) {
    problems.push_back({where, "", "expected a value after \"=\", found nothing. Write --set " + path + "=VALUE."});
    return;
  }
  set_where(*value, where);

  YamlNode* node = &root;
  const std::vector<std::string> segments = segments_of(path);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (node->kind == YamlNode::Kind::list) {  // of stages
      const std::string position = position_in(path);
      if (!position.empty() && !stands_at(*node, segments[i], position)) {
        problems.push_back({where, path,
                            "expected the stage \"" + segments[i] + "\" at position " + position +
                                ", found it elsewhere. Leave the position out: stages." + segments[i] + "."});
        return;
      }
      YamlNode* body = find_stage(*node, segments[i]);
      if (body == nullptr) {
        problems.push_back({where, path,
                            "expected a stage of the file, found \"" + segments[i] +
                                "\", which it does not have. Add \"- " + segments[i] + ":\" to stages."});
        return;
      }
      node = body;
      continue;
    }
    if (node->kind == YamlNode::Kind::null) node->kind = YamlNode::Kind::map;
    if (node->kind != YamlNode::Kind::map) {
      problems.push_back({where, path,
                          "expected a map above \"" + segments[i] + "\", found " + describe(*node) + ". Set \"" +
                              path.substr(0, path.rfind('.')) + "\" as a whole instead."});
      return;
    }
    YamlNode* child = node->find(segments[i]);
    if (child == nullptr) {
      YamlNode created;
      created.where = where;
      node->entries.emplace_back(YamlNode::Key{segments[i], where}, std::move(created));
      child = &node->entries.back().second;
    }
    node = child;
  }
  *node = std::move(*value);
}

}  // namespace ctk::pipeline
