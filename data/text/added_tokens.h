// Added tokens: strings that are one token wherever they stand, found before the text is cut up.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/pieces.h"
#include "data/text/tokenizer.h"

namespace ctk::data {

// Finds the leftmost, of these the longest.
class AddedTokens {
 public:
  // `content`: what to look for, where it is not the token's own content.
  void add(const AddedToken& token, const std::string& content);
  bool is_empty() const { return tokens_.empty(); }
  // Appends the pieces of `text`, moved by `offset`: tokens with their ids, and what lies between.
  void split(std::string_view text, std::size_t offset, bool finds_special, std::vector<Piece>& pieces) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at, std::size_t& end) const;
  std::vector<AddedToken> tokens_;
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // node << 8 | byte -> node; 0 is the root
  std::vector<std::int32_t> token_of_{-1};                  // of a node: index into tokens_, or -1
  std::array<bool, 256> starts_{};                          // bytes that some token starts with
};

}  // namespace ctk::data
