// SentencePiece's byte-pair encoding, as sentencepiece itself has it.
// In:  a normalized text; user-defined pieces and, between them, characters are the first symbols.
// Out: ids. Two neighbours join where their joint text is a piece; the highest score goes first, ties to the left.
//      Pieces of type unused are taken apart again; unknown characters in a row are one, or their bytes' pieces.
// Cost: O(n log n) for n characters, one look-up of text a pair.
// Source: Kudo and Richardson, SentencePiece, 2018; src/bpe_model.cc of sentencepiece 0.2.
#include <unordered_map>

#include "data/text/merge_symbols.h"
#include "data/text/piece_trie.h"
#include "data/text/token_model.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

constexpr std::int64_t kFrozen = -2;  // a user-defined piece: joins nothing

class SentenceBpe : public TokenModel {
 public:
  SentenceBpe(Vocabulary known, std::vector<double> scores, UnigramOptions options)
      : options_(std::move(options)), scores_(std::move(scores)) {
    vocabulary = std::move(known);
    unknown_id = options_.unknown;
    std::vector<std::pair<std::string_view, std::int32_t>> user_defined;
    for (std::size_t id = 0; id < options_.types.size(); ++id)
      if (options_.types[id] == PieceType::user_defined)
        user_defined.emplace_back(*vocabulary.token(static_cast<std::int64_t>(id)), static_cast<std::int32_t>(id));
    user_defined_ = PieceTrie(std::move(user_defined));
    for (unsigned byte = 0; byte < 256; ++byte)
      byte_ids_[byte] =
          options_.falls_back_to_bytes ? vocabulary.find(byte_token(static_cast<unsigned char>(byte))) : -1;
  }

  Status encode(std::string_view piece, std::vector<std::int64_t>& ids) const override {
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t length = user_defined_.is_empty() ? 0 : user_defined_.longest_prefix(piece.substr(at));
      const std::size_t end = at + (length != 0 ? length : decode_utf8(piece, at).length);
      append_symbol(symbols, length != 0 ? kFrozen : -1, at, end);
      at = end;
    }
    Halves halves;
    const auto joint_of = [&](const Symbol& left, const Symbol& right) -> Joint {
      const std::size_t length = right.end - left.begin;
      if (left.id == kFrozen || right.id == kFrozen || length > vocabulary.longest()) return {};
      const std::int64_t id = vocabulary.find(piece.substr(left.begin, length));
      if (id < 0 || is_reserved(id)) return {};
      return {-scores_[static_cast<std::size_t>(id)], id};
    };
    merge_symbols(symbols, joint_of, [&](const Symbol& left, const Symbol& right, std::int64_t id) {
      if (type_of(id) == PieceType::unused)
        halves[piece.substr(left.begin, right.end - left.begin)] = left.end - left.begin;
    });
    bool follows_unknown = false;
    for (const Symbol& symbol : symbols)
      if (symbol.is_alive) append(piece.substr(symbol.begin, symbol.end - symbol.begin), halves, follows_unknown, ids);
    return {};
  }

 private:
  using Halves = std::unordered_map<std::string_view, std::size_t>;  // an unused piece -> bytes of its left part

  PieceType type_of(std::int64_t id) const { return options_.types[static_cast<std::size_t>(id)]; }
  bool is_reserved(std::int64_t id) const {
    const PieceType type = type_of(id);
    return type == PieceType::unknown || type == PieceType::control || type == PieceType::byte;
  }

  void append(std::string_view text, const Halves& halves, bool& follows_unknown,
              std::vector<std::int64_t>& ids) const {
    std::vector<std::string_view> waiting = {text};
    while (!waiting.empty()) {
      const std::string_view part = waiting.back();
      waiting.pop_back();
      const std::int64_t id = vocabulary.find(part);
      if (id >= 0 && type_of(id) == PieceType::unused) {
        if (const auto half = halves.find(part); half != halves.end()) {
          waiting.push_back(part.substr(half->second));
          waiting.push_back(part.substr(0, half->second));
          continue;
        }
      }
      const bool is_unknown = id < 0 || id == *unknown_id || type_of(id) == PieceType::unused;
      if (!is_unknown) {
        ids.push_back(id);
      } else if (options_.falls_back_to_bytes) {
        for (char c : part) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
      } else if (!follows_unknown) {
        ids.push_back(*unknown_id);
      }
      follows_unknown = is_unknown;
    }
  }

  UnigramOptions options_;
  std::vector<double> scores_;  // by id
  PieceTrie user_defined_;
  std::int64_t byte_ids_[256];
};

}  // namespace

Result<std::unique_ptr<TokenModel>> make_sentence_bpe(Vocabulary vocabulary, std::vector<double> scores,
                                                      const UnigramOptions& options) {
  CTK_CHECK(check_scored_pieces(vocabulary, scores, options.where));
  return std::unique_ptr<TokenModel>(std::make_unique<SentenceBpe>(std::move(vocabulary), std::move(scores), options));
}

}  // namespace ctk::data
