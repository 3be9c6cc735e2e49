// Unigram: of all ways to cut a piece into tokens, the one whose scores have the highest sum.
// In:  a piece of n bytes. A character that is no token by itself may be unknown, at the lowest score less 10.
// Out: ids; unknown characters in a row are one, or their bytes' tokens.
// Cost: O(n x longest token) time. Memory grows with the stretches that tokens bridge without a break, not with n.
// Source: Kudo, Subword Regularization, 2018 (Viterbi); ties, unknown and byte tokens as in the package `tokenizers`,
// with UnigramOptions::is_sentence_piece as in sentencepiece, which adds in single precision and, in 0.2.3, starts anew
// from 0 where a sum has sunk below -1e5 (found by comparing ids, not from its source).
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/printable.h"
#include "data/text/piece_trie.h"
#include "data/text/token_model.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

constexpr double kUnknownPenalty = 10;
constexpr float kLowestSum = -1e5F;       // of sentencepiece; below it paths start anew from 0
constexpr std::size_t kWindow = 1 << 16;  // bytes of paths that are kept before they are cut where none goes across

class Unigram : public TokenModel {
 public:
  Unigram(Vocabulary known, std::vector<double> scores, UnigramOptions options)
      : options_(std::move(options)), scores_(std::move(scores)) {
    vocabulary = std::move(known);
    unknown_id = options_.unknown;
    unknown_ = static_cast<std::int32_t>(unknown_id.value_or(-1));
    for (unsigned byte = 0; byte < 256; ++byte)
      byte_ids_[byte] =
          options_.falls_back_to_bytes ? vocabulary.find(byte_token(static_cast<unsigned char>(byte))) : -1;
    build();
  }

  Status encode(std::string_view piece, std::vector<std::int64_t>& ids) const override {
    return options_.is_sentence_piece ? encode_by<float>(piece, ids) : encode_by<double>(piece, ids);
  }

 private:
  template <class Sum>
  struct Best {  // path to a place
    Sum score = 0;
    std::int32_t id = -1;      // of the token that ends there
    std::uint32_t length = 0;  // of that token; 0: no path yet
  };
  struct Run {  // of unknown characters whose end is not seen yet
    std::size_t begin = 0, end = 0;
  };

  void build() {
    double lowest = options_.is_sentence_piece ? FLT_MAX : INFINITY;
    float highest = FLT_MIN;
    const auto type_of = [&](std::size_t id) {
      return options_.types.empty() ? PieceType::normal : options_.types[id];
    };
    for (std::size_t id = 0; id < scores_.size(); ++id) {
      if (type_of(id) != PieceType::normal) continue;
      lowest = std::min(lowest, scores_[id]);
      highest = std::max(highest, static_cast<float>(scores_[id]));
    }
    unknown_score_ = lowest - kUnknownPenalty;
    std::vector<std::pair<std::string_view, std::int32_t>> pieces;
    for (std::size_t id = 0; id < scores_.size(); ++id) {
      const std::string* token = vocabulary.token(static_cast<std::int64_t>(id));
      if (type_of(id) == PieceType::user_defined)  // better than any other way
        scores_[id] = static_cast<double>(static_cast<float>(token->size()) * highest) - 0.1;
      else if (type_of(id) != PieceType::normal)
        continue;
      if (!token->empty()) pieces.emplace_back(*token, static_cast<std::int32_t>(id));
    }
    trie_ = PieceTrie(std::move(pieces));
  }

  template <class Sum>
  Status encode_by(std::string_view piece, std::vector<std::int64_t>& ids) const {
    std::vector<Best<Sum>> best(1);  // to `base`, `base` + 1...
    std::size_t base = 0, reach = 0;
    Run run;
    for (std::size_t at = 0; at < piece.size();) {
      if (at - base >= kWindow && reach == at) {  // every path goes through here
        append_path(piece, best, base, run, ids);
        best = {Best<Sum>{best.back().score}};
        base = at;
      }
      if (options_.is_sentence_piece && best[at - base].score < kLowestSum) {  // keeps single precision sharp
        const Sum sunk = best[at - base].score;
        for (std::size_t i = at - base; i < best.size(); ++i) best[i].score -= sunk;
      }
      const Sum here = best[at - base].score;
      const std::size_t width = decode_utf8(piece, at).length;
      const auto go = [&](std::size_t length, std::int32_t id, auto score) {
        reach = std::max(reach, at + length);
        if (best.size() <= reach - base) best.resize(reach - base + 1);
        Best<Sum>& target = best[at + length - base];
        if (target.length == 0 || score > target.score)
          target = {static_cast<Sum>(score), id, static_cast<std::uint32_t>(length)};
      };
      bool is_known = false;
      trie_.each_prefix(piece.substr(at), [&](std::size_t length, std::int32_t id) {
        go(length, id, static_cast<Sum>(scores_[static_cast<std::size_t>(id)]) + here);
        is_known = is_known || length == width;
      });
      if (!is_known) {
        if (unknown_ < 0) return no_unknown(piece.substr(at, width));
        go(width, unknown_, static_cast<Sum>(static_cast<Sum>(unknown_score_) + here));
      }
      at += width;
    }
    append_path(piece, best, base, run, ids);
    append_unknown(piece, run, ids);
    return {};
  }

  Error no_unknown(std::string_view character) const {
    return input_error(options_.where +
                       ".unk_id: expected a token for characters that the vocabulary lacks, such as \"" +
                       printable(character) + "\", found none. Take a tokenizer that has one.");
  }

  // The tokens of the path that ends at the last place of `best`, which starts at `base`.
  template <class Sum>
  void append_path(std::string_view piece, const std::vector<Best<Sum>>& best, std::size_t base, Run& run,
                   std::vector<std::int64_t>& ids) const {
    std::vector<std::size_t> ends;
    for (std::size_t end = best.size() - 1; end > 0; end -= best[end].length) ends.push_back(end);
    for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
      const Best<Sum>& token = best[*end];
      if (token.id == unknown_) {
        if (run.begin == run.end) run.begin = base + *end - token.length;
        run.end = base + *end;
        continue;
      }
      append_unknown(piece, run, ids);
      ids.push_back(token.id);
    }
  }

  void append_unknown(std::string_view piece, Run& run, std::vector<std::int64_t>& ids) const {
    if (run.begin == run.end) return;
    const std::string_view text = piece.substr(run.begin, run.end - run.begin);
    run = {};
    if (!options_.is_sentence_piece && text.size() <= vocabulary.longest()) {
      if (const std::int64_t whole = vocabulary.find(text); whole >= 0) return ids.push_back(whole);
    }
    const bool has_bytes =
        std::all_of(text.begin(), text.end(), [&](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; });
    if (!has_bytes) return ids.push_back(unknown_);
    for (char c : text) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  }

  UnigramOptions options_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0;
  std::int32_t unknown_ = -1;
  PieceTrie trie_;
  std::int64_t byte_ids_[256];  // -1: no such token
};

}  // namespace

Status check_scored_pieces(const Vocabulary& vocabulary, std::span<const double> scores, const std::string& where) {
  for (std::size_t id = 0; id < scores.size(); ++id) {
    const std::string* token = vocabulary.token(static_cast<std::int64_t>(id));
    if (!std::isfinite(scores[id]))
      return input_error(where + "[" + std::to_string(id) + "]: expected a finite score of token \"" +
                         printable(*token) + "\", found " + std::to_string(scores[id]) + ". Mend the file.");
    if (token->size() > kLongestPiece)
      return input_error(where + "[" + std::to_string(id) + "]: expected a token of at most " +
                         std::to_string(kLongestPiece) + " bytes, found one of " + std::to_string(token->size()) +
                         ". Mend the file.");
  }
  return {};
}

Result<std::unique_ptr<TokenModel>> make_unigram(Vocabulary vocabulary, std::vector<double> scores,
                                                 const UnigramOptions& options) {
  CTK_CHECK(check_scored_pieces(vocabulary, scores, options.where + (options.is_sentence_piece ? "" : ".vocab")));
  const std::int64_t count = vocabulary.size();
  if (options.unknown && (*options.unknown < 0 || *options.unknown >= count))
    return input_error(options.where + ".unk_id: expected an id of 0 to " + std::to_string(count - 1) + ", found " +
                       std::to_string(*options.unknown) + ". Mend the file.");
  return std::unique_ptr<TokenModel>(std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), options));
}

}  // namespace ctk::data
