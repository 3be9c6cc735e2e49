// A JSON file read with checks: every access names its place in the error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace ctk::data {

class JsonNode {
 public:
  // Errors: input (no JSON; names line and column, and what was expected).
  static Result<JsonNode> parse(std::string_view text, const std::string& file);

  // "tokenizer.json: model.vocab"
  std::string where() const { return path_.empty() ? file_ : file_ + ": " + path_; }
  const std::string& file() const { return file_; }
  bool is_absent() const;  // not there, or null
  bool is_object() const;
  bool is_array() const;
  bool is_text() const;
  bool is_number() const;
  std::string shown() const;  // the value as a message shows it, cut short
  // Errors: input (what is here is no object, array...): expected, found.
  Error expected(const std::string& what) const;

  JsonNode child(std::string_view key) const;  // absent where there is none
  std::size_t size() const;                    // of an array or object; else 0
  JsonNode at(std::size_t index) const;        // of an array

  // How many steps below the file's root.
  int depth() const { return depth_; }

  // The value itself. Errors: input (absent, or of another type).
  Result<std::string> text() const;
  Result<std::int64_t> integer() const;
  Result<double> number() const;
  // A member, or `fallback` where it is absent.
  Result<std::string> text(std::string_view key, const std::string& fallback) const;
  Result<bool> flag(std::string_view key, bool fallback) const;
  Result<std::int64_t> integer(std::string_view key, std::int64_t fallback) const;

  // Every member of an object; ends at the first error.
  Status each(const std::function<Status(const std::string& key, const JsonNode& value)>& visit) const;

 private:
  JsonNode(std::shared_ptr<const void> root, const void* value, std::string file, std::string path)
      : root_(std::move(root)), value_(value), file_(std::move(file)), path_(std::move(path)) {}
  JsonNode down(const void* value, std::string step) const;

  std::shared_ptr<const void> root_;
  const void* value_ = nullptr;  // nlohmann::json inside root_; nullptr: absent
  std::string file_, path_;
  int depth_ = 0;
};

constexpr int kMaxDepth = 16;  // of components inside components

}  // namespace ctk::data
