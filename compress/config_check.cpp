#include <algorithm>
#include <charconv>
#include <limits>

#include "compress/config_schema.h"
#include "compress/nearest_key.h"

namespace ctk::pipeline {
namespace {

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

std::string_view last_segment(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string below(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

// Keys that may stand directly under a concrete path.
std::vector<std::string_view> children_of(const std::string& section) {
  if (section == "data") return {"train", "calibrate", "score", "select", "evaluate"};
  if (section == "stages") return list_names(NameKind::stage);
  std::vector<std::string_view> keys;
  for (const KeyRow& row : key_rows()) {
    const std::string_view key = last_segment(row.path);
    const std::string path = below(section, key);
    if (key != "*" && std::ranges::count(row.path, '.') == std::ranges::count(path, '.') && find_row(path) == &row) {
      keys.push_back(key);
    }
  }
  return keys;
}

// Sections where `key` would be valid: `stages.quantize`, `data.<split>`.
std::vector<std::string> homes_of(std::string_view key) {
  std::vector<std::string> homes;
  for (const KeyRow& row : key_rows()) {
    if (last_segment(row.path) != key) continue;
    std::string home(row.path.substr(0, row.path.size() - key.size()));
    if (home.ends_with('.')) home.pop_back();
    if (home == "data.*") home = "data.<split>";
    homes.push_back(home.empty() ? "the top level" : home);
  }
  return homes;
}

class TreeCheck {
 public:
  TreeCheck(CheckedValues& into, const std::string& file_name) : into_(into), file_name_(file_name) {}

  void run(const YamlNode& root) {
    if (root.kind == YamlNode::Kind::null) {
      problem({root.where, ""},
              "expected a pipeline with model, output and stages, found an empty file. "
              "See configs/pipelines for examples.");
      return;
    }
    section(root, "", {root.where, ""});
  }

 private:
  void problem(const Place& place, std::string message) {
    into_.problems.push_back({place.where, place.path, std::move(message)});
  }

  // A map of keys: known ones are checked, absent ones get their default.
  void section(const YamlNode& node, const std::string& path, const Place& place) {
    into_.sections[path] = {place.where, place.path};
    if (node.kind != YamlNode::Kind::map && node.kind != YamlNode::Kind::null) {
      problem(place, "expected a map of keys (" + joined(children_of(path)) + "), found " + describe(node) +
                         ". Write its keys below it.");
      return;
    }
    std::map<std::string, std::string> seen;
    for (const auto& [key, child] : node.entries) {
      const Place here{key.where, below(place.path, key.text)};
      const auto [first, is_new] = seen.emplace(key.text, key.where);
      if (!is_new) {
        problem(here, "expected each key once, found \"" + key.text + "\" again (first at " + first->second +
                          "). Remove one.");
        continue;
      }
      entry(child, below(path, key.text), here);
    }
    for (const std::string_view key : children_of(path)) {
      if (!seen.contains(std::string(key))) absent(below(path, key), below(place.path, key), place.where);
    }
  }

  void entry(const YamlNode& node, const std::string& path, const Place& place) {
    const KeyRow* row = find_row(path);
    if (row == nullptr) return unknown_key(path, place);
    if (!row->needs.empty()) unavailable(place, "\"" + std::string(last_segment(path)) + "\"", row->needs);
    if (row->kind == ValueKind::section) return section(node, path, place);
    if (row->kind == ValueKind::stage_list) return stages(node, place);
    if (row->kind == ValueKind::latency && node.kind == YamlNode::Kind::map) return section(node, path, place);
    const Place at{node.where.empty() ? place.where : node.where, place.path};
    if (auto value = check_value(node, *row, at, into_)) into_.values[path] = {std::move(*value), at.where, at.path};
  }

  void absent(const std::string& path, const std::string& shown_path, const std::string& where) {
    const KeyRow* row = find_row(path);
    if (row == nullptr || row->fallback.empty()) return;
    if (row->fallback == "!") {
      into_.problems.push_back({where, shown_path,
                                "expected " + std::string(title_of(row->kind)) + ", found nothing. Add the key \"" +
                                    std::string(last_segment(path)) + "\"."});
      return;
    }
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = row->fallback;
    if (auto value = check_value(node, *row, {"", shown_path}, into_)) {
      into_.values[path] = {std::move(*value), "", shown_path};
    }
  }

  void unknown_key(const std::string& path, const Place& place) {
    const std::string key(last_segment(path));
    const std::string parent = path.size() > key.size() ? path.substr(0, path.size() - key.size() - 1) : "";
    const std::vector<std::string_view> valid = children_of(parent);
    std::string message = "expected one of " + joined(valid) + "; found the unknown key \"" + key + "\"";
    const std::string_view best = nearest(key, valid);
    if (is_near(key, best)) {
      message += "; did you mean \"" + std::string(best) + "\"?";
    } else if (const std::vector<std::string> homes = homes_of(key); !homes.empty()) {
      message += "; \"" + key + "\" is valid under ";
      for (std::size_t i = 0; i < std::min<std::size_t>(homes.size(), 3); ++i) message += (i ? ", " : "") + homes[i];
      message += ".";
    } else {
      message += "; the nearest valid key is \"" + std::string(best) + "\".";
    }
    problem(place, std::move(message));
  }

  void unavailable(const Place& place, const std::string& what, std::string_view needs) {
    into_.unavailable.push_back(
        {place.where, place.path,
         what + " needs " + std::string(needs) + ", which this version does not have yet. Leave it out."});
  }

  void stages(const YamlNode& node, const Place& place) {
    if (node.kind != YamlNode::Kind::list) {
      problem(place, "expected a list of stages (\"- calibrate: {...}\"), found " + describe(node) +
                         ". Write its keys below it.");
      return;
    }
    if (node.items.empty())
      problem(place,
              "expected at least one stage, found an empty list. Add one, such as \"- calibrate: {method: mse}\".");
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      stage(node.items[i], place.path + "[" + std::to_string(i) + "]");
    }
  }

  // {name: {keys}} or, with every key at its default, just the name.
  void stage(const YamlNode& item, const std::string& shown_path) {
    const Place place{item.where, shown_path};
    if (item.kind == YamlNode::Kind::scalar) {
      YamlNode nothing;
      nothing.where = item.where;
      return stage_body(item.text, nothing, {item.where, below(shown_path, item.text)});
    }
    if (item.kind != YamlNode::Kind::map || item.entries.empty()) {
      problem(place,
              "expected a stage like \"calibrate: {method: mse}\", found " + describe(item) + ". Name the stage.");
      return;
    }
    const auto is_stage = [](const auto& entry) { return find_name(NameKind::stage, entry.first.text) != nullptr; };
    const auto named = std::ranges::find_if(item.entries, is_stage);
    const auto chosen = named == item.entries.end() ? item.entries.begin() : named;
    for (auto entry = item.entries.begin(); entry != item.entries.end(); ++entry) {
      const Place here{entry->first.where, below(shown_path, entry->first.text)};
      if (entry == chosen) {
        stage_body(entry->first.text, entry->second, here);
      } else if (is_stage(*entry)) {
        problem(here, "expected one stage an item, found \"" + entry->first.text + "\" beside \"" + chosen->first.text +
                          "\". Begin it with \"- \" on a line of its own.");
      } else {
        stray_key(chosen->first.text, entry->first.text, here);
      }
    }
  }

  // A key beside the stage's name instead of below it.
  void stray_key(const std::string& stage_name, const std::string& key, const Place& place) {
    const std::string section = "stages." + stage_name;
    std::string message = "expected one stage an item, found the key \"" + key + "\" beside \"" + stage_name + "\"";
    if (find_row(below(section, key)) != nullptr) {
      message += "; \"" + key + "\" is valid under " + section + ": indent it one level more.";
    } else if (const std::vector<std::string> homes = homes_of(key); !homes.empty()) {
      message += "; \"" + key + "\" is valid under " + homes.front() + ".";
    } else {
      message += did_you_mean(key, children_of(section));
    }
    problem(place, std::move(message));
  }

  void stage_body(const std::string& name, const YamlNode& body, const Place& place) {
    if (find_name(NameKind::stage, name) == nullptr) {
      const std::vector<std::string_view> known = list_names(NameKind::stage);
      const std::string_view best = nearest(name, known);
      std::string message = "expected a stage (" + joined(known) + "), found \"" + name + "\"";
      message += is_near(name, best) ? "; did you mean \"" + std::string(best) + "\"?"
                                     : "; the nearest valid stage is \"" + std::string(best) + "\".";
      problem(place, std::move(message));
      return;
    }
    const std::string path = "stages." + name;
    if (std::ranges::find(into_.stages, name) != into_.stages.end()) {
      problem(place, "expected each stage once, found \"" + name + "\" again (first at " + into_.sections[path].first +
                         "). Remove one.");
      return;
    }
    into_.stages.push_back(name);
    const KeyRow* row = find_row(path);
    if (!row->needs.empty()) unavailable(place, "stage \"" + name + "\"", row->needs);
    section(body, path, place);
  }

  CheckedValues& into_;
  std::string file_name_;
};

}  // namespace

CheckedValues check_tree(const YamlNode& root, const std::string& file_name) {
  CheckedValues values;
  TreeCheck(values, file_name).run(root);
  return values;
}

}  // namespace ctk::pipeline
