// A YAML document as plain data with positions. The only place that sees the YAML library.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace ctk::pipeline {

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  struct Key {
    std::string text;
    std::string where;  // as YamlNode::where
  };

  Kind kind = Kind::null;
  std::string text;                               // of a scalar, as written
  bool is_quoted = false;                         // "60" in quotes is a text, not a number
  std::string where;                              // "edge.yaml:14", or "--set stages.quantize.scheme" for an override
  std::vector<YamlNode> items;                    // of a list
  std::vector<std::pair<Key, YamlNode>> entries;  // of a map, in order; repeated keys are all kept

  const YamlNode* find(std::string_view key) const;
  YamlNode* find(std::string_view key);
};

// What a node is, for messages: "a list", "a map", "nothing", or the scalar in quotes.
std::string describe(const YamlNode& node);

// Parses one document. `file_name` is what messages call it; nothing is opened. An empty document gives a null node.
// Errors: config (file:line: what the YAML syntax expected), also for several documents, for nesting past 32 levels and
// for more than 100,000 nodes (aliases count as what they stand for).
Result<YamlNode> parse_yaml(const std::string& text, const std::string& file_name);

}  // namespace ctk::pipeline
