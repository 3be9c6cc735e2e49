#include "data/text/vocabulary.h"

#include <algorithm>

#include "core/printable.h"

namespace ctk::data {

Status Vocabulary::add(const std::string& token, std::int64_t id, const std::string& where) {
  const std::string shown = "token \"" + printable(token) + "\"";
  if (id < 0 || id >= kMaxVocabulary)
    return input_error(where + ": " + shown + ": expected an id of 0 to " + std::to_string(kMaxVocabulary - 1) +
                       ", found " + std::to_string(id) + ". Mend the vocabulary.");
  if (const std::string* other = this->token(id); other != nullptr && *other != token)
    return input_error(where + ": expected each id once, found " + std::to_string(id) + " for \"" + printable(*other) +
                       "\" and for \"" + printable(token) + "\". Mend the vocabulary.");
  const auto [at, is_new] = ids_.emplace(token, id);
  if (!is_new && at->second != id)
    return input_error(where + ": " + shown + ": expected one id, found " + std::to_string(at->second) + " and " +
                       std::to_string(id) + ". Mend the vocabulary.");
  if (id >= size()) tokens_.resize(static_cast<std::size_t>(id) + 1, nullptr);
  tokens_[static_cast<std::size_t>(id)] = &at->first;
  longest_ = std::max(longest_, token.size());
  return {};
}

}  // namespace ctk::data
