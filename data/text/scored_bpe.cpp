// SentencePiece's byte-pair encoding by scores, as llama.cpp has it for GGUF files of kind "llama".
// In:  a piece; its characters are the first symbols, known or not.
// Out: ids. Two neighbours join where their joint text is a token; the highest score goes first, ties to the left.
// Cost: O(n log n) for n characters, one look-up of text a pair.
// Source: Kudo and Richardson, SentencePiece, 2018.
#include <cmath>

#include "data/text/merge_symbols.h"
#include "data/text/token_model.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

class ScoredBpe : public TokenModel {
 public:
  ScoredBpe(Vocabulary known, std::vector<float> scores, std::optional<std::int64_t> unknown)
      : scores_(std::move(scores)) {
    vocabulary = std::move(known);
    unknown_id = unknown;
    for (unsigned byte = 0; byte < 256; ++byte)
      byte_ids_[byte] = vocabulary.find(byte_token(static_cast<unsigned char>(byte)));
  }

  Status encode(std::string_view piece, std::vector<std::int64_t>& ids) const override {
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t end = at + decode_utf8(piece, at).length;
      append_symbol(symbols, vocabulary.find(piece.substr(at, end - at)), at, end);
      at = end;
    }
    merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) -> Joint {
      const std::size_t length = right.end - left.begin;
      if (length > vocabulary.longest()) return {};
      const std::int64_t id = vocabulary.find(piece.substr(left.begin, length));
      return id < 0 ? Joint{} : Joint{-static_cast<double>(scores_[static_cast<std::size_t>(id)]), id};
    });
    for (const Symbol& symbol : symbols) {
      if (!symbol.is_alive) continue;
      if (symbol.id >= 0)
        ids.push_back(symbol.id);
      else
        append_bytes(piece.substr(symbol.begin, symbol.end - symbol.begin), ids);
    }
    return {};
  }

 private:
  void append_bytes(std::string_view text, std::vector<std::int64_t>& ids) const {
    for (char c : text) {
      const std::int64_t id = byte_ids_[static_cast<unsigned char>(c)];
      if (id >= 0)
        ids.push_back(id);
      else if (unknown_id)
        ids.push_back(*unknown_id);
    }
  }

  std::vector<float> scores_;  // by id
  std::int64_t byte_ids_[256];
};

}  // namespace

Result<std::unique_ptr<TokenModel>> make_scored_bpe(Vocabulary vocabulary, std::vector<float> scores,
                                                    std::optional<std::int64_t> unknown, const std::string& where) {
  if (static_cast<std::int64_t>(scores.size()) != vocabulary.size())
    return input_error(where + ": scores: expected one for each of " + std::to_string(vocabulary.size()) +
                       " tokens, found " + std::to_string(scores.size()) + ". Take the file they belong to.");
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (std::isnan(scores[i]))
      return input_error(where + ": scores: expected numbers, found NaN for token " + std::to_string(i) +
                         ". Mend the file.");
  return std::unique_ptr<TokenModel>(std::make_unique<ScoredBpe>(std::move(vocabulary), std::move(scores), unknown));
}

}  // namespace ctk::data
