// Token <-> id.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result.h"

namespace ctk::data {

constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 24;  // ids are below it: a table by id stays small

class Vocabulary {
 public:
  // Errors: input (id out of range or taken, token there already with another id; opens with `where`).
  Status add(const std::string& token, std::int64_t id, const std::string& where);
  std::int64_t find(std::string_view token) const {  // -1: not there
    const auto at = ids_.find(token);
    return at == ids_.end() ? -1 : at->second;
  }
  const std::string* token(std::int64_t id) const {  // nullptr: no such id
    return id < 0 || id >= size() ? nullptr : tokens_[static_cast<std::size_t>(id)];
  }
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }  // highest id + 1
  std::size_t longest() const { return longest_; }                                 // bytes

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  // into ids_, whose keys stay where they are
  std::size_t longest_ = 0;
};

}  // namespace ctk::data
