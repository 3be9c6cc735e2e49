// WordPiece and whole words.
// Source: Wu et al., Google's Neural Machine Translation System, 2016; greedy from the left, as BERT has it.
#include "core/printable.h"
#include "data/text/token_model.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

class WordPiece : public TokenModel {
 public:
  WordPiece(Vocabulary known, std::string prefix, std::int64_t max_characters)
      : prefix_(std::move(prefix)), max_characters_(max_characters) {
    vocabulary = std::move(known);
  }

  Status encode(std::string_view piece, std::vector<std::int64_t>& ids) const override {
    std::vector<std::size_t> starts;  // of characters, and the end
    for (std::size_t at = 0; at < piece.size(); at += decode_utf8(piece, at).length) {
      starts.push_back(at);
      if (static_cast<std::int64_t>(starts.size()) > max_characters_) {
        ids.push_back(*unknown_id);
        return {};
      }
    }
    starts.push_back(piece.size());
    const std::size_t before = ids.size();
    std::string text;
    for (std::size_t first = 0; first + 1 < starts.size();) {
      std::int64_t id = -1;
      std::size_t last = starts.size() - 1;
      for (; last > first && id < 0; --last) {
        text.assign(first == 0 ? "" : prefix_).append(piece.substr(starts[first], starts[last] - starts[first]));
        if (text.size() <= vocabulary.longest()) id = vocabulary.find(text);
      }
      if (id < 0) {
        ids.resize(before);
        ids.push_back(*unknown_id);
        return {};
      }
      ids.push_back(id);
      first = last + 1;
    }
    return {};
  }

 private:
  std::string prefix_;
  std::int64_t max_characters_;
};

class WordLevel : public TokenModel {
 public:
  explicit WordLevel(Vocabulary known) { vocabulary = std::move(known); }
  Status encode(std::string_view piece, std::vector<std::int64_t>& ids) const override {
    const std::int64_t id = vocabulary.find(piece);
    ids.push_back(id < 0 ? *unknown_id : id);
    return {};
  }
};

Status set_unknown(TokenModel& model, const std::string& unknown, const std::string& where) {
  const std::int64_t id = model.vocabulary.find(unknown);
  if (id < 0)
    return input_error(where + ".unk_token: expected a token of the vocabulary, found \"" + printable(unknown) +
                       "\". Mend the file.");
  model.unknown_id = id;
  return {};
}

}  // namespace

Result<std::unique_ptr<TokenModel>> make_word_piece(Vocabulary vocabulary, const std::string& unknown,
                                                    std::string prefix, std::int64_t max_characters,
                                                    const std::string& where) {
  if (max_characters < 1 || max_characters > 10000)  // time grows with its square
    return input_error(where + ".max_input_chars_per_word: expected 1 to 10000, found " +
                       std::to_string(max_characters) + ". Mend the file.");
  auto model = std::make_unique<WordPiece>(std::move(vocabulary), std::move(prefix), max_characters);
  CTK_CHECK(set_unknown(*model, unknown, where));
  return std::unique_ptr<TokenModel>(std::move(model));
}

Result<std::unique_ptr<TokenModel>> make_word_level(Vocabulary vocabulary, const std::string& unknown,
                                                    const std::string& where) {
  auto model = std::make_unique<WordLevel>(std::move(vocabulary));
  CTK_CHECK(set_unknown(*model, unknown, where));
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace ctk::data
