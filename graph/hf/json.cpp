#include "graph/hf/json.h"

#include <set>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/printable.h"

namespace ctk::graph::hf {

using nlohmann::json;

Result<json> parse_json(std::string_view text, std::size_t max_depth) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  bool is_too_deep = false;
  // False drops a value before it is kept, so that what is refused anyway takes no memory.
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (static_cast<std::size_t>(depth) >= max_depth &&
        (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start)) {
      is_too_deep = true;
    }
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && twice.empty()) twice = key;
    }
    return !is_too_deep && twice.empty();
  };
  json value;
  try {
    value = json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 4: ..."
    const std::string what = error.what();
    const auto bracket = what.find("] ");
    return input_error(
        "expected JSON, found: " + printable(bracket == std::string::npos ? what : what.substr(bracket + 2)) +
        ". Download the file again");
  }
  if (is_too_deep) {
    return input_error("expected JSON nested at most " + std::to_string(max_depth) +
                       " deep, found deeper. Download the file again");
  }
  if (!twice.empty()) {
    return input_error("expected every key once, found \"" + printable(twice) + "\" twice. Remove one of the two");
  }
  if (!value.is_object()) return input_error("expected a JSON object, found " + shown(value) + ". Check the file");
  return value;
}

Result<json> read_json(const std::string& path, std::size_t max_bytes, std::size_t max_depth) {
  CTK_TRY(const MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > max_bytes) {
    return input_error(path + ": expected at most " + std::to_string(max_bytes) + " bytes of JSON, found " +
                       std::to_string(file.bytes().size()) + ". Check the file");
  }
  auto value = parse_json(file.text(), max_depth);
  if (!value) return std::move(value).error().with_context(path);
  return value;
}

std::string shown(const json& value) {
  constexpr std::size_t kLength = 80;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kLength) {
    text.resize(kLength);
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
    if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xc0) text.pop_back();
    text += "...";
  }
  return printable(text);
}

}  // namespace ctk::graph::hf
