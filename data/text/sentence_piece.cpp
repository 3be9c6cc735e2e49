#include "data/text/sentence_piece.h"

#include <unordered_map>

#include "core/hash.h"
#include "core/printable.h"
#include "data/text/chars_map.h"
#include "data/text/piece_trie.h"
#include "data/text/sentence_piece_file.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

// Rules, spaces and user-defined pieces, which stay as they are. Source: src/normalizer.cc of sentencepiece.
class SentenceNormalizer {
 public:
  SentenceNormalizer(const SentencePieceFile& file, CharsMap map, PieceTrie user_defined)
      : map_(std::move(map)),
        user_defined_(std::move(user_defined)),
        space_(file.escapes_spaces ? kSpaceMark : " "),
        adds_space_(file.adds_space),
        removes_extra_(file.removes_extra_spaces),
        is_behind_(file.puts_space_behind) {}

  Status operator()(std::string& text) const {
    std::string_view in = text;
    while (removes_extra_ && !in.empty()) {
      const Part part = next(in);
      if (part.text != " ") break;
      in.remove_prefix(part.length);
    }
    std::string out;
    if (in.empty()) {
      text.clear();
      return {};
    }
    out.reserve(in.size() + in.size() / 2);
    if (adds_space_ && !is_behind_) out += space_;
    bool follows_space = removes_extra_;
    while (!in.empty()) {
      const Part part = next(in);
      in.remove_prefix(part.length);
      std::string_view rest = part.text;
      while (follows_space && rest.starts_with(' ')) rest.remove_prefix(1);
      for (char c : rest)
        if (c == ' ')
          out += space_;
        else
          out += c;
      if (!rest.empty()) follows_space = removes_extra_ && rest.ends_with(' ');
      if (out.size() > most_normalized(text.size())) return normalized_too_long(text.size(), out.size());
    }
    while (removes_extra_ && out.ends_with(space_)) out.resize(out.size() - space_.size());
    if (adds_space_ && is_behind_) out += space_;
    text = std::move(out);
    return {};
  }

 private:
  struct Part {
    std::string_view text;   // what to write
    std::size_t length = 0;  // bytes it stands for
  };

  // What becomes of the start of `in`, which is not empty.
  Part next(std::string_view in) const {
    if (const std::size_t length = user_defined_.is_empty() ? 0 : user_defined_.longest_prefix(in); length != 0)
      return {in.substr(0, length), length};
    if (const CharsMap::Rule rule = map_.longest(in); rule.length != 0) return {rule.text, rule.length};
    const Utf8Char c = decode_utf8(in, 0);
    return {c.code == kInvalidByte ? "\ufffd" : in.substr(0, c.length), c.length};
  }

  CharsMap map_;
  PieceTrie user_defined_;
  std::string space_;
  bool adds_space_, removes_extra_, is_behind_;
};

Error broken(const std::string& where, const std::string& expected, const std::string& found) {
  return input_error(where + ": expected " + expected + ", found " + found + ". Fetch the file again.");
}

// The one piece for what is unknown. Byte pieces are 256 where they are used, else none.
Status check_types(const SentencePieceFile& file, UnigramOptions& options) {
  std::size_t bytes = 0;
  for (std::size_t id = 0; id < file.types.size(); ++id) {
    const std::string place = file.where + ": pieces[" + std::to_string(id) + "]";
    const std::string shown = "\"" + printable(file.pieces[id]) + "\"";
    if (file.types[id] == PieceType::unknown) {
      if (options.unknown)
        return broken(place, "one piece of type UNKNOWN",
                      shown + " after pieces[" + std::to_string(*options.unknown) + "]");
      options.unknown = static_cast<std::int64_t>(id);
    }
    if (file.types[id] != PieceType::byte) continue;
    ++bytes;
    bool is_byte = false;
    for (unsigned byte = 0; byte < 256 && !is_byte; ++byte)
      is_byte = file.pieces[id] == byte_token(static_cast<unsigned char>(byte));
    if (!is_byte) return broken(place, "a piece of type BYTE, <0x00> to <0xFF>", shown);
    if (!file.falls_back_to_bytes)
      return broken(place, "no piece of type BYTE, since trainer_spec.byte_fallback is false", shown);
  }
  if (!options.unknown) return broken(file.where + ": pieces", "one piece of type UNKNOWN", "none");
  if (file.falls_back_to_bytes && bytes != 256)
    return broken(file.where + ": pieces", "256 pieces of type BYTE, since trainer_spec.byte_fallback is true",
                  std::to_string(bytes));
  return {};
}

std::optional<std::int64_t> find_control(const SentencePieceFile& file, const Vocabulary& vocabulary,
                                         const std::string& piece) {
  const std::int64_t id = vocabulary.find(piece);
  if (id < 0 || file.types[static_cast<std::size_t>(id)] != PieceType::control) return std::nullopt;
  return id;
}

// The space that was put before a text goes; of byte pieces each is its byte. Source: Decode() of sentencepiece.
Decoder make_decoder(const SentencePieceFile& file) {
  std::unordered_map<std::string, char> bytes;
  for (unsigned byte = 0; byte < 256 && file.falls_back_to_bytes; ++byte)
    bytes.emplace(byte_token(static_cast<unsigned char>(byte)), static_cast<char>(byte));
  return [bytes = std::move(bytes), drops_any = file.removes_extra_spaces,
          drops = file.removes_extra_spaces || file.adds_space](std::vector<std::string>& tokens) {
    std::string out;
    bool has_dropped = false;
    for (const std::string& token : tokens) {
      if (const auto byte = bytes.find(token); byte != bytes.end()) {
        out += byte->second;
        continue;
      }
      std::string_view rest = token;
      if (drops && out.empty() && (drops_any || !has_dropped) && rest.starts_with(kSpaceMark)) {
        rest.remove_prefix(kSpaceMark.size());
        has_dropped = true;
      }
      for (std::size_t at = 0; at < rest.size();) {
        const bool is_mark = rest.substr(at).starts_with(kSpaceMark);
        out += is_mark ? ' ' : rest[at];
        at += is_mark ? kSpaceMark.size() : 1;
      }
    }
    tokens = {std::move(out)};
    return Status();
  };
}

}  // namespace

bool is_sentence_piece(std::string_view bytes) {
  if (!bytes.starts_with('\n')) return false;  // the tag of `pieces`
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] != '{';
}

Result<std::unique_ptr<Tokenizer::Body>> read_sentence_piece(std::string_view bytes, const std::string& where) {
  CTK_TRY(SentencePieceFile file, read_sentence_piece_file(bytes, where));
  UnigramOptions options;
  options.where = where + ": pieces";
  options.falls_back_to_bytes = file.falls_back_to_bytes;
  options.is_sentence_piece = true;
  options.types = file.types;
  CTK_CHECK(check_types(file, options));
  Vocabulary vocabulary;
  std::vector<std::pair<std::string_view, std::int32_t>> user_defined;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    CTK_CHECK(vocabulary.add(file.pieces[id], static_cast<std::int64_t>(id), options.where));
    if (file.types[id] == PieceType::user_defined)
      user_defined.emplace_back(file.pieces[id], static_cast<std::int32_t>(id));
  }
  auto body = std::make_unique<Tokenizer::Body>();
  body->where = where;
  body->fingerprint = Fingerprint().add(bytes).hex();
  body->bos = find_control(file, vocabulary, file.bos);
  body->eos = find_control(file, vocabulary, file.eos);
  body->padding = find_control(file, vocabulary, file.padding);
  CharsMap map;
  if (!file.chars_map.empty()) {
    CTK_TRY(map, CharsMap::read(file.chars_map, where + ": normalizer_spec.precompiled_charsmap"));
  }
  const auto normalizer =
      std::make_shared<const SentenceNormalizer>(file, std::move(map), PieceTrie(std::move(user_defined)));
  body->normalizers.push_back([normalizer](std::string& text) { return (*normalizer)(text); });
  CTK_TRY(body->model, (file.is_bpe ? make_sentence_bpe : make_unigram)(std::move(vocabulary), file.scores, options));
  body->decoders.push_back(make_decoder(file));
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    if (file.types[id] != PieceType::control && file.types[id] != PieceType::unknown) continue;
    AddedToken token;
    token.content = file.pieces[id];
    token.id = static_cast<std::int64_t>(id);
    token.is_special = true;
    CTK_CHECK(body->add(std::move(token), options.where));
  }
  return body;
}

}  // namespace ctk::data
