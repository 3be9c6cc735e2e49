// Models: they code one piece of text as ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "data/text/json_node.h"
#include "data/text/vocabulary.h"

namespace ctk::data {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of one piece, which is not empty. Errors: input (a piece that the vocabulary cannot hold).
  virtual Status encode(std::string_view piece, std::vector<std::int64_t>& ids) const = 0;

  Vocabulary vocabulary;
  std::optional<std::int64_t> unknown_id;
};

// The "model" section of tokenizer.json. Errors: input (unknown type, vocabulary or merges that make no sense).
Result<std::unique_ptr<TokenModel>> read_token_model(const JsonNode& section);

struct BpeOptions {
  std::string where;  // opens messages
  std::string prefix, suffix;
  std::string unknown;  // empty: characters that the vocabulary lacks vanish
  bool fuses_unknown = false, falls_back_to_bytes = false, ignores_merges = false;
};
// Byte-pair encoding: of all neighbours that `merges` names, the pair that it names first is joined, the leftmost
// first.
Result<std::unique_ptr<TokenModel>> make_bpe(Vocabulary vocabulary,
                                             const std::vector<std::pair<std::string, std::string>>& merges,
                                             const BpeOptions& options);

// SentencePiece's BPE by scores: of all neighbours whose joint text is a token, the pair with the highest score is
// joined, the leftmost first. What is no token in the end becomes its bytes' tokens <0x00> to <0xFF>, else `unknown`.
Result<std::unique_ptr<TokenModel>> make_scored_bpe(Vocabulary vocabulary, std::vector<float> scores,
                                                    std::optional<std::int64_t> unknown, const std::string& where);

// What sentencepiece says of a piece.
enum class PieceType : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
constexpr std::size_t kLongestPiece = 4096;  // bytes: time grows with the longest

struct UnigramOptions {
  std::string where;                    // opens messages
  std::optional<std::int64_t> unknown;  // none: a character that the vocabulary lacks is an error
  bool falls_back_to_bytes = false;     // unknown text becomes its bytes' tokens where there is one for each
  bool is_sentence_piece = false;       // scores are added in single precision, unknown text is never a token
  std::vector<PieceType> types;         // by id, or empty: all normal. Only normal and user-defined pieces are found.
};
// The tokens with the highest sum of scores (natural logarithms, by id), user-defined ones before any other.
Result<std::unique_ptr<TokenModel>> make_unigram(Vocabulary vocabulary, std::vector<double> scores,
                                                 const UnigramOptions& options);
// SentencePiece's BPE in full: like make_scored_bpe(), but for types, of which there is one a piece, and unknown text.
// options.unknown must be there, with falls_back_to_bytes a piece for each byte too.
Result<std::unique_ptr<TokenModel>> make_sentence_bpe(Vocabulary vocabulary, std::vector<double> scores,
                                                      const UnigramOptions& options);
// Errors: input (a score that is not finite, a piece longer than kLongestPiece: "where[id]").
Status check_scored_pieces(const Vocabulary& vocabulary, std::span<const double> scores, const std::string& where);

// The longest token that starts the word, then the longest that goes on, each with `prefix` before it.
Result<std::unique_ptr<TokenModel>> make_word_piece(Vocabulary vocabulary, const std::string& unknown,
                                                    std::string prefix, std::int64_t max_characters,
                                                    const std::string& where);
// The whole piece is a token or unknown.
Result<std::unique_ptr<TokenModel>> make_word_level(Vocabulary vocabulary, const std::string& unknown,
                                                    const std::string& where);

// "<0x0A>"
std::string byte_token(unsigned char byte);

}  // namespace ctk::data
