// The "model" section of tokenizer.json.
#include "core/printable.h"
#include "data/text/token_model.h"

namespace ctk::data {
namespace {

Result<Vocabulary> read_vocabulary(const JsonNode& node) {
  Vocabulary vocabulary;
  CTK_CHECK(node.each([&](const std::string& token, const JsonNode& value) -> Status {
    CTK_TRY(const std::int64_t id, value.integer());
    return vocabulary.add(token, id, node.where());
  }));
  if (vocabulary.size() == 0) return node.expected("at least one token");
  return vocabulary;
}

// Each merge is "left right" or ["left", "right"].
Result<std::vector<std::pair<std::string, std::string>>> read_merges(const JsonNode& list) {
  if (!list.is_array()) return list.expected("an array of merges");
  std::vector<std::pair<std::string, std::string>> merges;
  merges.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonNode merge = list.at(i);
    if (merge.is_array() && merge.size() == 2) {
      CTK_TRY(std::string left, merge.at(0).text());
      CTK_TRY(std::string right, merge.at(1).text());
      merges.emplace_back(std::move(left), std::move(right));
      continue;
    }
    const std::string text = merge.is_text() ? *merge.text() : "";
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      return merge.expected("\"left right\" or [\"left\", \"right\"]");
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return merges;
}

Result<std::unique_ptr<TokenModel>> read_bpe(const JsonNode& node) {
  if (const JsonNode dropout = node.child("dropout"); !dropout.is_absent()) {
    CTK_TRY(const double share, dropout.number());
    if (share != 0) return dropout.expected("null or 0: with dropout ids would be random");
  }
  BpeOptions options;
  options.where = node.where();
  CTK_TRY(options.prefix, node.text("continuing_subword_prefix", ""));
  CTK_TRY(options.suffix, node.text("end_of_word_suffix", ""));
  CTK_TRY(options.unknown, node.text("unk_token", ""));
  CTK_TRY(options.fuses_unknown, node.flag("fuse_unk", false));
  CTK_TRY(options.falls_back_to_bytes, node.flag("byte_fallback", false));
  CTK_TRY(options.ignores_merges, node.flag("ignore_merges", false));
  CTK_TRY(Vocabulary vocabulary, read_vocabulary(node.child("vocab")));
  CTK_TRY(const auto merges, read_merges(node.child("merges")));
  return make_bpe(std::move(vocabulary), merges, options);
}

Result<std::unique_ptr<TokenModel>> read_word_piece(const JsonNode& node) {
  CTK_TRY(const std::string unknown, node.text("unk_token", "[UNK]"));
  CTK_TRY(const std::string prefix, node.text("continuing_subword_prefix", "##"));
  CTK_TRY(const std::int64_t longest, node.integer("max_input_chars_per_word", 100));
  CTK_TRY(Vocabulary vocabulary, read_vocabulary(node.child("vocab")));
  return make_word_piece(std::move(vocabulary), unknown, prefix, longest, node.where());
}

Result<std::unique_ptr<TokenModel>> read_word_level(const JsonNode& node) {
  CTK_TRY(const std::string unknown, node.text("unk_token", "<unk>"));
  CTK_TRY(Vocabulary vocabulary, read_vocabulary(node.child("vocab")));
  return make_word_level(std::move(vocabulary), unknown, node.where());
}

// "vocab": [["<unk>", 0.0], ["\u2581the", -3.2]...], by id.
Result<std::unique_ptr<TokenModel>> read_unigram(const JsonNode& node) {
  UnigramOptions options;
  options.where = node.where();
  CTK_TRY(options.falls_back_to_bytes, node.flag("byte_fallback", false));
  if (const JsonNode unknown = node.child("unk_id"); !unknown.is_absent()) {
    CTK_TRY(options.unknown, unknown.integer());
  }
  const JsonNode list = node.child("vocab");
  if (!list.is_array() || list.size() == 0) return list.expected("an array of tokens and scores");
  Vocabulary vocabulary;
  std::vector<double> scores;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonNode pair = list.at(i);
    if (!pair.is_array() || pair.size() != 2) return pair.expected("a token and its score");
    CTK_TRY(const std::string token, pair.at(0).text());
    CTK_CHECK(vocabulary.add(token, static_cast<std::int64_t>(i), list.where()));
    CTK_TRY(const double score, pair.at(1).number());
    scores.push_back(score);
  }
  return make_unigram(std::move(vocabulary), std::move(scores), options);
}

struct Kind {
  std::string_view type;
  Result<std::unique_ptr<TokenModel>> (*read)(const JsonNode& node);
};
constexpr Kind kKinds[] = {
    {"BPE", read_bpe}, {"WordPiece", read_word_piece}, {"WordLevel", read_word_level}, {"Unigram", read_unigram}};

}  // namespace

Result<std::unique_ptr<TokenModel>> read_token_model(const JsonNode& section) {
  if (!section.is_object()) return section.expected("an object");
  // Files of old name no type: merges mean BPE, a prefix WordPiece, a list Unigram.
  const bool has_merges = !section.child("merges").is_absent();
  const bool has_prefix = !section.child("continuing_subword_prefix").is_absent();
  const bool has_scores = section.child("vocab").is_array();
  CTK_TRY(const std::string type, section.text("type", has_merges   ? "BPE"
                                                       : has_prefix ? "WordPiece"
                                                       : has_scores ? "Unigram"
                                                                    : ""));
  std::string known;
  for (const Kind& kind : kKinds) {
    if (kind.type == type) return kind.read(section);
    known += (known.empty() ? "" : ", ") + std::string(kind.type);
  }
  return input_error(section.where() + ": expected a model of type " + known + "; found \"" + printable(type) +
                     "\". Take a tokenizer of one of these.");
}

}  // namespace ctk::data
