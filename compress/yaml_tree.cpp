#include "compress/yaml_tree.h"

#include <yaml-cpp/yaml.h>

#include <exception>

namespace ctk::pipeline {
namespace {

constexpr int kMostLevels = 32;
constexpr int kMostNodes = 100'000;  // an alias inside an alias can stand for billions

class Converter {
 public:
  explicit Converter(std::string file_name) : file_name_(std::move(file_name)) {}

  std::string where(const YAML::Mark& mark) const {
    return mark.is_null() ? file_name_ : file_name_ + ":" + std::to_string(mark.line + 1);
  }

  const std::vector<YAML::Mark>& quoted() const { return quoted_; }

  Result<YamlNode> convert(const YAML::Node& source, int level) {
    YamlNode node;
    node.where = where(source.Mark());
    if (level > kMostLevels || ++count_ > kMostNodes) {
      return config_error(node.where + ": expected at most " + std::to_string(kMostLevels) + " levels and " +
                          std::to_string(kMostNodes) + " values, found more. Write the values out without aliases.");
    }
    switch (source.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        break;
      case YAML::NodeType::Scalar:
        node.kind = YamlNode::Kind::scalar;
        node.text = source.Scalar();
        node.is_quoted = source.Tag() == "!";
        if (node.is_quoted) quoted_.push_back(source.Mark());
        break;
      case YAML::NodeType::Sequence:
        node.kind = YamlNode::Kind::list;
        for (const YAML::Node& item : source) {
          CTK_TRY(YamlNode child, convert(item, level + 1));
          node.items.push_back(std::move(child));
        }
        break;
      case YAML::NodeType::Map:
        node.kind = YamlNode::Kind::map;
        for (const auto& entry : source) {
          if (!entry.first.IsScalar()) {
            return config_error(where(entry.first.Mark()) +
                                ": expected a word as key, found a list or a map. Write a word before the colon.");
          }
          if (entry.first.Tag() == "!") quoted_.push_back(entry.first.Mark());
          CTK_TRY(YamlNode child, convert(entry.second, level + 1));
          node.entries.emplace_back(YamlNode::Key{entry.first.Scalar(), where(entry.first.Mark())}, std::move(child));
        }
        break;
    }
    return node;
  }

 private:
  std::string file_name_;
  int count_ = 0;
  std::vector<YAML::Mark> quoted_;  // where quoted texts begin
};

// The parser takes the end of the file for the end of a quoted text. Line of the first text that is not closed, or 0.
int open_quote(const std::vector<YAML::Mark>& marks, const std::string& text) {
  std::vector<std::size_t> lines{0};
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') lines.push_back(i + 1);
  }
  for (const YAML::Mark& mark : marks) {
    if (mark.is_null() || static_cast<std::size_t>(mark.line) >= lines.size()) continue;
    std::size_t at = lines[static_cast<std::size_t>(mark.line)] + static_cast<std::size_t>(mark.column);
    if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) continue;
    const char quote = text[at];
    for (++at; at < text.size() && text[at] != quote; ++at) {
      if (text[at] == '\\' && quote == '"') ++at;
    }
    // A doubled quote inside '...' ends one part and begins the next, which is closed or not in its turn.
    while (quote == '\'' && at + 1 < text.size() && text[at + 1] == quote) {
      for (at += 2; at < text.size() && text[at] != quote; ++at) {
      }
    }
    if (at >= text.size()) return mark.line + 1;
  }
  return 0;
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, child] : entries) {
    if (name.text == key) return &child;
  }
  return nullptr;
}

YamlNode* YamlNode::find(std::string_view key) {
  return const_cast<YamlNode*>(static_cast<const YamlNode*>(this)->find(key));
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return "\"" + node.text + "\"";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
  }
  return "nothing";
}

Result<YamlNode> parse_yaml(const std::string& text, const std::string& file_name) {
  Converter converter(file_name);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty()) {
      YamlNode nothing;
      nothing.where = file_name + ":1";
      return nothing;
    }
    if (documents.size() > 1) {
      return config_error(converter.where(documents[1].Mark()) + ": expected one YAML document, found " +
                          std::to_string(documents.size()) + ". Remove the \"---\" between them.");
    }
    CTK_TRY(YamlNode root, converter.convert(documents[0], 0));
    if (const int line = open_quote(converter.quoted(), text)) {
      return config_error(file_name + ":" + std::to_string(line) +
                          ": expected YAML, found a syntax error: a quoted text that does not end. Close the quote.");
    }
    return root;
  } catch (const YAML::Exception& error) {
    return config_error(converter.where(error.mark) + ": expected YAML, found a syntax error: " + error.msg +
                        ". Mend the line.");
  } catch (const std::exception& error) {
    return config_error(file_name + ": expected YAML, found what the parser cannot read: " + error.what() +
                        ". Mend the file.");
  }
}

}  // namespace ctk::pipeline
