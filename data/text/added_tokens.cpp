#include "data/text/added_tokens.h"

#include "data/text/unicode.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

bool holds_at(std::string_view text, std::size_t at, bool (*holds)(char32_t)) {
  const Utf8Char c = decode_utf8(text, at);
  return c.code != kInvalidByte && holds(c.code);
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const bool follows_word = begin > 0 && holds_at(text, previous_utf8(text, begin), is_word);
  return !follows_word && !(end < text.size() && holds_at(text, end, is_word));
}

}  // namespace

void AddedTokens::add(const AddedToken& token, const std::string& content) {
  if (content.empty()) return;
  std::uint32_t node = 0;
  for (char c : content) {
    const std::uint64_t edge = std::uint64_t{node} << 8 | static_cast<std::uint8_t>(c);
    const auto [at, is_new] = edges_.emplace(edge, static_cast<std::uint32_t>(token_of_.size()));
    if (is_new) token_of_.push_back(-1);
    node = at->second;
  }
  if (token_of_[node] >= 0) return;  // the first of equal ones
  token_of_[node] = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back(token);
  starts_[static_cast<std::uint8_t>(content[0])] = true;
}

const AddedToken* AddedTokens::longest_at(std::string_view text, std::size_t at, std::size_t& end) const {
  const AddedToken* found = nullptr;
  std::uint32_t node = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const auto edge = edges_.find(std::uint64_t{node} << 8 | static_cast<std::uint8_t>(text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    if (token_of_[node] < 0) continue;
    found = &tokens_[static_cast<std::size_t>(token_of_[node])];
    end = i + 1;
  }
  return found;
}

void AddedTokens::split(std::string_view text, std::size_t offset, bool finds_special,
                        std::vector<Piece>& pieces) const {
  std::size_t done = 0;  // where the text that is not in a piece yet begins
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = 0;
    const AddedToken* token = starts_[static_cast<std::uint8_t>(text[at])] ? longest_at(text, at, end) : nullptr;
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    at = end;
    if (token->is_special && !finds_special) continue;
    if (token->single_word && !stands_alone(text, begin, end)) continue;
    while (token->strips_left && begin > done) {
      const std::size_t start = previous_utf8(text, begin);
      if (start < done || !holds_at(text, start, is_whitespace)) break;
      begin = start;
    }
    while (token->strips_right && end < text.size() && holds_at(text, end, is_whitespace))
      end += decode_utf8(text, end).length;
    if (done < begin) pieces.push_back({offset + done, offset + begin});
    pieces.push_back({offset + begin, offset + end, token->id});
    done = end;
    at = std::max(at, end);
  }
  if (done != text.size()) pieces.push_back({offset + done, offset + text.size()});
}

}  // namespace ctk::data
