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
            return config_error(where(entry.first.Mark()) + ": expected a word as key, found a list or a map");
          }
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
};

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
    return converter.convert(documents[0], 0);
  } catch (const YAML::Exception& error) {
    return config_error(converter.where(error.mark) + ": expected YAML, found a syntax error: " + error.msg + ".");
  } catch (const std::exception& error) {
    return config_error(file_name + ": expected YAML, found what the parser cannot read: " + error.what() + ".");
  }
}

}  // namespace ctk::pipeline
