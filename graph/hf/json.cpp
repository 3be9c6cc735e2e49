#include "graph/hf/json.h"

#include <set>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/printable.h"

namespace ctk::graph::hf {

using nlohmann::json;

namespace {

// Looks at depth and keys and keeps nothing: the parser's own callback, which could drop values as they come, walks all
// earlier members of an object at the end of each.
class Watch final : public nlohmann::json_sax<json> {
 public:
  explicit Watch(std::size_t max_depth) : max_depth_(max_depth) {}

  bool is_too_deep = false;
  std::string twice, problem;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) twice = name;
    return twice.empty();
  }
  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 4: ..."
    const std::string what = error.what();
    const auto bracket = what.find("] ");
    problem = bracket == std::string::npos ? what : what.substr(bracket + 2);
    return false;
  }

 private:
  bool enter() {
    is_too_deep = keys_.size() >= max_depth_;
    keys_.emplace_back();
    return !is_too_deep;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  std::size_t max_depth_;
  std::vector<std::set<std::string>> keys_;  // of the objects and lists around
};

}  // namespace

Result<json> parse_json(std::string_view text, std::size_t max_depth) {
  Watch watch(max_depth);
  json::sax_parse(text.begin(), text.end(), &watch);
  const bool is_too_deep = watch.is_too_deep;
  const std::string& twice = watch.twice;
  if (!watch.problem.empty()) {
    return input_error("expected JSON, found: " + printable(watch.problem) + ". Download the file again");
  }
  if (is_too_deep) {
    return input_error("expected JSON nested at most " + std::to_string(max_depth) +
                       " deep, found deeper. Download the file again");
  }
  if (!twice.empty()) {
    return input_error("expected every key once, found \"" + printable(twice) + "\" twice. Remove one of the two");
  }
  json value;
  try {
    value = json::parse(text.begin(), text.end());
  } catch (const json::exception& error) {  // a number beyond double
    return input_error("expected JSON, found: " + printable(std::string(error.what())) + ". Download the file again");
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
