// Typed access to the keys of config.json, which remembers what was asked for and the first thing that was wrong.
// Internal to graph/hf.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/hf/json.h"

namespace ctk::graph::hf {

class ConfigReader {
 public:
  // `where`: put before the key in messages, "rope_scaling." or "".
  explicit ConfigReader(const nlohmann::json& object, std::string where = "")
      : object_(object), where_(std::move(where)) {}

  // null counts as absent. A value of another type is an error that status() tells, and the fallback meanwhile.
  std::optional<std::int64_t> integer(const std::string& key);
  std::optional<double> real(const std::string& key);
  std::optional<bool> boolean(const std::string& key);
  std::optional<std::string> text(const std::string& key);
  const nlohmann::json* object(const std::string& key);
  const nlohmann::json* list(const std::string& key);
  std::int64_t required_integer(const std::string& key);
  double required_real(const std::string& key);
  bool has(const std::string& key) const { return object_.contains(key); }  // null too
  void skip(const std::string& key) { asked_.insert(key); }

  // "expected ..., found ...": the first of them is kept.
  void fail(const std::string& key, const std::string& expected, const std::string& found, const std::string& remedy);
  Status status() const { return error_ ? Status(*error_) : Status(); }
  // Keys nobody asked for, with a value that is not null.
  std::vector<std::string> unasked() const;

 private:
  const nlohmann::json* find(const std::string& key);
  template <class Is>
  const nlohmann::json* typed(const std::string& key, const char* expected, Is is);

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> asked_;
  std::optional<Error> error_;
};

}  // namespace ctk::graph::hf
