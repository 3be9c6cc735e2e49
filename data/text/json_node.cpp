#include "data/text/json_node.h"

#include <nlohmann/json.hpp>

#include "core/printable.h"

namespace ctk::data {
namespace {

using nlohmann::json;

const json& value_of(const void* value) {
  return *static_cast<const json*>(value);
}

// Reads for the sake of the message only.
struct ErrorFinder : nlohmann::json_sax<json> {
  std::string message;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    message = error.what();
    const std::size_t start = message.find("parse error ");
    if (start != std::string::npos) message.erase(0, start);
    return false;
  }
};

}  // namespace

Result<JsonNode> JsonNode::parse(std::string_view text, const std::string& file) {
  auto root = std::make_shared<json>(json::parse(text.begin(), text.end(), nullptr, false));
  if (root->is_discarded()) {
    ErrorFinder finder;
    json::sax_parse(text.begin(), text.end(), &finder);
    return input_error(file + ": expected JSON, found " + (text.empty() ? "an empty file" : printable(finder.message)) +
                       ". Fetch the file again.");
  }
  const void* value = root.get();
  return JsonNode(std::move(root), value, file, "");
}

bool JsonNode::is_absent() const {
  return value_ == nullptr || value_of(value_).is_null();
}
bool JsonNode::is_object() const {
  return value_ != nullptr && value_of(value_).is_object();
}
bool JsonNode::is_array() const {
  return value_ != nullptr && value_of(value_).is_array();
}
bool JsonNode::is_text() const {
  return value_ != nullptr && value_of(value_).is_string();
}
bool JsonNode::is_number() const {
  return value_ != nullptr && value_of(value_).is_number();
}

std::string JsonNode::shown() const {
  if (value_ == nullptr) return "nothing";
  const json& value = value_of(value_);
  if (value.is_object()) return "an object of " + std::to_string(value.size()) + " members";
  if (value.is_array()) return "an array of " + std::to_string(value.size());
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 80) {
    std::size_t end = 77;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
    text = text.substr(0, end) + "...";
  }
  return printable(text);
}

Error JsonNode::expected(const std::string& what) const {
  return input_error(where() + ": expected " + what + ", found " + shown() + ". Fetch or mend the file.");
}

JsonNode JsonNode::down(const void* value, std::string step) const {
  JsonNode node(root_, value, file_, path_ + std::move(step));
  node.depth_ = depth_ + 1;
  return node;
}

JsonNode JsonNode::child(std::string_view key) const {
  const std::string name(key);
  const void* value = nullptr;
  if (is_object()) {
    const auto found = value_of(value_).find(name);
    if (found != value_of(value_).end()) value = &*found;
  }
  return down(value, (path_.empty() ? "" : ".") + printable(name));
}

std::size_t JsonNode::size() const {
  return is_array() || is_object() ? value_of(value_).size() : 0;
}

JsonNode JsonNode::at(std::size_t index) const {
  return down(&value_of(value_)[index], "[" + std::to_string(index) + "]");
}

Result<std::string> JsonNode::text() const {
  if (!is_text()) return expected("a string");
  return value_of(value_).get_ref<const std::string&>();
}

Result<std::int64_t> JsonNode::integer() const {
  if (value_ == nullptr || !value_of(value_).is_number_integer()) return expected("an integer");
  const json& value = value_of(value_);
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return expected("an integer below 2^63");
  return value.get<std::int64_t>();
}

Result<double> JsonNode::number() const {
  if (!is_number()) return expected("a number");
  return value_of(value_).get<double>();
}

Result<std::string> JsonNode::text(std::string_view key, const std::string& fallback) const {
  const JsonNode node = child(key);
  if (node.is_absent()) return fallback;
  return node.text();
}

Result<bool> JsonNode::flag(std::string_view key, bool fallback) const {
  const JsonNode node = child(key);
  if (node.is_absent()) return fallback;
  if (!value_of(node.value_).is_boolean()) return node.expected("true or false");
  return value_of(node.value_).get<bool>();
}

Result<std::int64_t> JsonNode::integer(std::string_view key, std::int64_t fallback) const {
  const JsonNode node = child(key);
  if (node.is_absent()) return fallback;
  return node.integer();
}

Status JsonNode::each(const std::function<Status(const std::string&, const JsonNode&)>& visit) const {
  if (!is_object()) return expected("an object");
  for (const auto& [key, value] : value_of(value_).items()) {
    const JsonNode node(root_, &value, file_, path_ + "[\"" + key + "\"]");
    CTK_CHECK(visit(key, node));
  }
  return {};
}

}  // namespace ctk::data
