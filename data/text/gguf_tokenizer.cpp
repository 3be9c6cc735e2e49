// Tokenizers from vocabularies as GGUF files carry them. Pre-tokenizers, normalizers and decoders are those of
// tokenizer.json, named by the file instead of spelled out; patterns are those of llama.cpp (src/llama-vocab.cpp).
#include <algorithm>

#include "core/hash.h"
#include "core/printable.h"
#include "data/text/tokenizer_body.h"

namespace ctk::data {
namespace {

// How text is cut, one pattern after another, and whether a piece that is a token needs no merges.
struct PreKind {
  std::string_view name;
  std::vector<std::string_view> patterns;
  bool ignores_merges = false;
};

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr std::string_view kLlama3 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const std::vector<PreKind>& pre_kinds() {
  static const std::vector<PreKind> kinds = {
      {"default", {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", R"([0-9][0-9][0-9])"}},
      {"gpt-2", {kGpt2}},
      {"smollm", {R"(\p{N})", kGpt2}},
      {"starcoder", {R"(\p{N})", kGpt2}},
      {"refact", {R"(\p{N})", kGpt2}},
      {"command-r", {R"(\p{N})", kGpt2}},
      {"llama-bpe", {kLlama3}, true},
      {"qwen2", {kQwen2}},
  };
  return kinds;
}

JsonNode built_in(std::string_view json) {
  return std::move(*JsonNode::parse(json, "built in"));
}

enum Type { kUnknown = 2, kControl = 3, kUserDefined = 4 };

Status check_counts(const TokenizerParts& parts) {
  const std::size_t count = parts.tokens.size();
  if (count == 0)
    return input_error(parts.where + ": tokens: expected at least one, found none. Fetch the file again.");
  if (!parts.types.empty() && parts.types.size() != count)
    return input_error(parts.where + ": token types: expected one for each of " + std::to_string(count) +
                       " tokens, found " + std::to_string(parts.types.size()) + ". Fetch the file again.");
  const std::pair<const char*, std::optional<std::int64_t>> ids[] = {
      {"BOS", parts.bos}, {"EOS", parts.eos}, {"unknown", parts.unknown}, {"padding", parts.padding}};
  for (const auto& [name, id] : ids)
    if (id && (*id < 0 || *id >= static_cast<std::int64_t>(count)))
      return input_error(parts.where + ": " + name + " token: expected an id of 0 to " + std::to_string(count - 1) +
                         ", found " + std::to_string(*id) + ". Fetch the file again.");
  if ((parts.adds_bos && !parts.bos) || (parts.adds_eos && !parts.eos))
    return input_error(parts.where + ": expected the ids of the tokens that are added around a text, found none for " +
                       (parts.adds_bos && !parts.bos ? "BOS" : "EOS") + ". Fetch the file again.");
  return {};
}

Status fill_gpt2(const TokenizerParts& parts, Vocabulary vocabulary, Tokenizer::Body& body) {
  const std::string name = parts.pre.empty() ? "default" : parts.pre;
  const auto& kinds = pre_kinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const PreKind& k) { return k.name == name; });
  if (kind == kinds.end()) {
    std::string known;
    for (std::string_view each : pre_tokenizer_names()) known += (known.empty() ? "" : ", ") + std::string(each);
    return input_error(parts.where + ": pre-tokenizer: expected " + known + "; found \"" + printable(name) +
                       "\". Give the model's tokenizer.json instead.");
  }
  for (std::string_view pattern : kind->patterns) {
    CTK_TRY(const std::shared_ptr<const Pattern> compiled, Pattern::compile(pattern, parts.where));
    body.pre_tokenizers.push_back([compiled](Pieces& pieces) {
      Pattern::Finder finder(*compiled);
      return split_pieces(
          pieces, SplitBehavior::isolated, false,
          [&](std::string_view text, std::vector<Match>& matches) { return finder.find_all(text, matches); });
    });
  }
  CTK_TRY(const auto bytes, read_pre_tokenizers(built_in(R"({"type": "ByteLevel", "add_prefix_space": false,
                                                             "use_regex": false})")));
  body.pre_tokenizers.insert(body.pre_tokenizers.end(), bytes.begin(), bytes.end());
  CTK_TRY(body.decoders, read_decoders(built_in(R"({"type": "ByteLevel"})")));
  std::vector<std::pair<std::string, std::string>> merges;
  merges.reserve(parts.merges.size());
  for (std::size_t i = 0; i < parts.merges.size(); ++i) {
    const std::string& merge = parts.merges[i];
    const std::size_t space = merge.find(' ', 1);  // a token may start with a space
    if (space == std::string::npos)
      return input_error(parts.where + ": merges[" + std::to_string(i) + "]: expected \"left right\", found \"" +
                         printable(merge) + "\". Fetch the file again.");
    merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  BpeOptions options;
  options.where = parts.where;
  options.ignores_merges = kind->ignores_merges;
  CTK_TRY(body.model, make_bpe(std::move(vocabulary), merges, options));
  return {};
}

Status fill_llama(const TokenizerParts& parts, Vocabulary vocabulary, Tokenizer::Body& body) {
  const std::string prepend = parts.adds_space ? R"({"type": "Prepend", "prepend": " "}, )" : "";
  CTK_TRY(body.normalizers,
          read_normalizers(built_in(R"({"type": "Sequence", "normalizers": [)" + prepend +
                                    R"({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]})")));
  CTK_TRY(body.decoders,
          read_decoders(built_in(
              R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                  {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": )" +
              std::string(parts.adds_space ? "1" : "0") + "}]}")));
  std::optional<std::int64_t> unknown = parts.unknown;
  for (std::size_t i = 0; i < parts.types.size() && !unknown; ++i)
    if (parts.types[i] == kUnknown) unknown = static_cast<std::int64_t>(i);
  CTK_TRY(body.model, make_scored_bpe(std::move(vocabulary), parts.scores, unknown, parts.where));
  return {};
}

}  // namespace

std::vector<std::string_view> pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const PreKind& kind : pre_kinds()) names.push_back(kind.name);
  return names;
}

Result<std::shared_ptr<const Tokenizer>> make_tokenizer(const TokenizerParts& parts) {
  CTK_CHECK(check_counts(parts));
  Vocabulary vocabulary;
  Fingerprint print;
  print.add(parts.kind).add(parts.pre);
  for (std::size_t i = 0; i < parts.tokens.size(); ++i) {
    CTK_CHECK(vocabulary.add(parts.tokens[i], static_cast<std::int64_t>(i), parts.where + ": tokens"));
    print.add(parts.tokens[i]);
  }
  for (const std::string& merge : parts.merges) print.add(merge);
  print.add(std::as_bytes(std::span(parts.scores))).add(std::as_bytes(std::span(parts.types)));
  print.add(std::uint64_t{parts.adds_bos}).add(std::uint64_t{parts.adds_eos}).add(std::uint64_t{parts.adds_space});
  auto body = std::make_unique<Tokenizer::Body>();
  body->where = parts.where;
  body->fingerprint = print.hex();
  if (parts.kind == "gpt2")
    CTK_CHECK(fill_gpt2(parts, std::move(vocabulary), *body));
  else if (parts.kind == "llama")
    CTK_CHECK(fill_llama(parts, std::move(vocabulary), *body));
  else
    return input_error(parts.where + ": tokenizer: expected a vocabulary of kind gpt2 or llama, found \"" +
                       printable(parts.kind) + "\". Give the model's tokenizer.json instead.");
  for (std::size_t i = 0; i < parts.types.size(); ++i) {
    const bool is_special = parts.types[i] == kControl || (parts.kind == "llama" && parts.types[i] == kUnknown);
    if (!is_special && parts.types[i] != kUserDefined) continue;
    AddedToken token;
    token.content = parts.tokens[i];
    token.id = static_cast<std::int64_t>(i);
    token.is_special = is_special;
    CTK_CHECK(body->add(std::move(token), parts.where + ": tokens"));
  }
  body->bos = parts.bos;
  body->eos = parts.eos;
  body->padding = parts.padding;
  if (parts.adds_bos) body->prefix.push_back(*parts.bos);
  if (parts.adds_eos) body->suffix.push_back(*parts.eos);
  return std::shared_ptr<const Tokenizer>(std::make_shared<Tokenizer>(std::move(body)));
}

}  // namespace ctk::data
