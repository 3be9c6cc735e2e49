// report.json: writer and reader over the one list of keys in report_fields.h.
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "export/report.h"
#include "export/report_fields.h"

namespace ctk::exporter {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
concept Structure = std::is_class_v<T> && !std::same_as<T, std::string>;

class Writer {
 public:
  Writer(std::string path, std::vector<WarningRow>& warnings) : path_(std::move(path)), warnings_(warnings) {}

  Json take() { return std::move(json_); }

  template <class T>
  void operator()(const char* key, T& field) {
    json_[key] = written(below(key), field);
  }
  void direction(const char* key, bool& is_higher) { json_[key] = is_higher ? "higher" : "lower"; }
  void constant(const char* key, const char* text) { json_[key] = text; }
  template <class T>
  void if_present(const char* key, std::optional<T>& field) {
    if (field) json_[key] = written(below(key), *field);
  }
  void keyed_by_name(const char* key, std::vector<SplitRow>& rows) {
    json_[key] = Json::object();
    for (SplitRow& row : rows) json_[key][row.name] = written(below(key) + "." + row.name, row);
  }

 private:
  std::string below(const char* key) const { return path_.empty() ? key : path_ + "." + key; }

  Json written(const std::string&, std::string& text) { return text; }
  template <std::integral T>
  Json written(const std::string&, T& number) {
    return number;
  }
  Json written(const std::string& path, double& number) {
    if (std::isfinite(number)) return number;
    warnings_.push_back(
        {"not_finite", path + " is " + (std::isnan(number) ? "not a number" : "infinite") + "; written as null"});
    return nullptr;
  }
  template <class T>
  Json written(const std::string& path, std::optional<T>& value) {
    return value ? written(path, *value) : Json(nullptr);
  }
  template <class T>
  Json written(const std::string& path, std::vector<T>& list) {
    Json array = Json::array();
    // By index: writing the warnings' own list must not be upset by a warning that is added meanwhile.
    for (std::size_t i = 0; i < list.size(); ++i)
      array.push_back(written(path + "[" + std::to_string(i) + "]", list[i]));
    return array;
  }
  template <Structure T>
  Json written(const std::string& path, T& structure) {
    Writer writer(path, warnings_);
    fields(writer, structure);
    return writer.take();
  }

  std::string path_;
  std::vector<WarningRow>& warnings_;
  Json json_ = Json::object();
};

// Absent keys leave a field as it is, so that older and newer reports are read; a key of another type is an error.
class Reader {
 public:
  Reader(const Json& json, std::string path, std::string& problem)
      : json_(json), path_(std::move(path)), problem_(problem) {}

  template <class T>
  void operator()(const char* key, T& field) {
    const auto found = json_.find(key);
    if (found != json_.end()) read(*found, path_ + "." + key, field);
  }
  void direction(const char* key, bool& is_higher) {
    std::string text = is_higher ? "higher" : "lower";
    (*this)(key, text);
    is_higher = text != "lower";
  }
  void constant(const char*, const char*) {}
  template <class T>
  void if_present(const char* key, std::optional<T>& field) {
    (*this)(key, field);
  }
  void keyed_by_name(const char* key, std::vector<SplitRow>& rows) {
    const auto found = json_.find(key);
    if (found == json_.end()) return;
    if (!found->is_object()) return fail(path_ + "." + key, "an object");
    for (const auto& [name, value] : found->items()) {
      rows.emplace_back().name = name;
      read(value, path_ + "." + key + "." + name, rows.back());
    }
  }

 private:
  void fail(const std::string& path, const std::string& expected) {
    if (problem_.empty()) problem_ = "report" + path + ": expected " + expected;
  }
  void read(const Json& json, const std::string& path, std::string& text) {
    if (!json.is_string()) return fail(path, "a text");
    text = json.get<std::string>();
  }
  void read(const Json& json, const std::string& path, bool& flag) {
    if (!json.is_boolean()) return fail(path, "true or false");
    flag = json.get<bool>();
  }
  template <std::integral T>
  void read(const Json& json, const std::string& path, T& number) {
    if (!json.is_number_integer()) return fail(path, "an integer");
    number = json.get<T>();
  }
  void read(const Json& json, const std::string& path, double& number) {
    if (json.is_null()) return;
    if (!json.is_number()) return fail(path, "a number");
    number = json.get<double>();
  }
  template <class T>
  void read(const Json& json, const std::string& path, std::optional<T>& value) {
    if (json.is_null()) return value.reset();
    read(json, path, value.emplace());
  }
  template <class T>
  void read(const Json& json, const std::string& path, std::vector<T>& list) {
    if (!json.is_array()) return fail(path, "a list");
    list.clear();
    for (const Json& item : json) {
      const std::string place = path + "[" + std::to_string(list.size()) + "]";
      read(item, place, list.emplace_back());
    }
  }
  template <Structure T>
  void read(const Json& json, const std::string& path, T& structure) {
    if (!json.is_object()) return fail(path, "an object");
    Reader reader(json, path, problem_);
    fields(reader, structure);
  }

  const Json& json_;
  std::string path_;
  std::string& problem_;
};

}  // namespace

std::string to_json(const Report& report) {
  Report copy = report;
  std::vector<WarningRow> added;
  {
    Writer first("", added);  // finds what is not finite
    fields(first, copy);
  }
  copy.warnings.insert(copy.warnings.end(), added.begin(), added.end());
  Writer writer("", added);
  fields(writer, copy);
  return writer.take().dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Report> parse_report(const std::string& json) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object()) return input_error("report: expected a JSON object");
  Report report;
  std::string problem;
  Reader reader(parsed, "", problem);
  fields(reader, report);
  if (!problem.empty()) return input_error(problem);
  return report;
}

}  // namespace ctk::exporter
