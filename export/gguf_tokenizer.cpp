// tokenizer.json as llama.cpp's vocabulary. Two kinds have a name there: byte-level BPE ("gpt2", merges and the name of
// a pre-tokenizer) and SentencePiece-type BPE with byte fallback ("llama", scores). A score is minus the rank of the
// first merge that makes the piece: llama.cpp joins the pair with the highest score first, as the merges' order does.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/printable.h"
#include "export/gguf_metadata.h"
#include "graph/hf/json.h"

namespace ctk::exporter {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{256} << 20, kDeepest = 32;
enum TokenType : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// Split patterns of tokenizer.json that llama.cpp knows by a name.
struct Pattern {
  std::string_view name, regex;
  bool ignores_merges;
};
constexpr Pattern kPatterns[] = {
    {"llama-bpe",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     true},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     false},
};

const json& child(const json& parent, const char* key) {
  static const json kNothing;
  const auto found = parent.is_object() ? parent.find(key) : parent.end();
  return parent.is_object() && found != parent.end() ? *found : kNothing;
}
bool truth(const json& value, bool fallback) {
  return value.is_boolean() ? value.get<bool>() : fallback;
}
std::string text(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

// A normalizer or pre-tokenizer with sequences laid flat.
std::vector<json> steps(const json& value, const char* list) {
  if (value.is_null()) return {};
  if (text(child(value, "type")) != "Sequence") return {value};
  std::vector<json> out;
  for (const json& step : child(value, list)) {
    for (json& inner : steps(step, list)) out.push_back(std::move(inner));
  }
  return out;
}

Error unnamed(const std::string& what, const json& found) {
  return input_error("tokenizer.json: " + what + ": expected one that llama.cpp has a name for, found " +
                     graph::hf::shown(found) + ". Choose another format than gguf");
}

class Vocabulary {
 public:
  Vocabulary(const json& tokenizer, std::int64_t rows, graph::gguf::Metadata& keys)
      : tokenizer_(tokenizer), model_(child(tokenizer, "model")), rows_(static_cast<std::size_t>(rows)), keys_(keys) {}

  Status write() {
    if (text(child(model_, "type")) != "BPE") return unnamed("model.type", child(model_, "type"));
    const bool is_pieces = truth(child(model_, "byte_fallback"), false);
    CTK_CHECK(collect());
    if (is_pieces) {
      CTK_CHECK(write_pieces());
    } else {
      CTK_CHECK(write_byte_level());
    }
    return {};
  }

  std::optional<std::uint32_t> id_of(const std::string& content) const {
    const auto found = std::ranges::find(tokens_, content);
    if (content.empty() || found == tokens_.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - tokens_.begin());
  }

 private:
  // Tokens by id; ids nobody has are unused, as llama.cpp's own converter fills them.
  Status collect() {
    tokens_.resize(rows_);
    types_.assign(rows_, kUnused);
    const json &vocabulary = child(model_, "vocab"), &added = child(tokenizer_, "added_tokens");
    if (!vocabulary.is_object()) return unnamed("model.vocab", vocabulary);
    for (const auto& [token, id] : vocabulary.items()) CTK_CHECK(place(token, id, kNormal));
    for (const json& token : added) {
      const TokenType type = truth(child(token, "special"), false) ? kControl : kUserDefined;
      CTK_CHECK(place(text(child(token, "content")), child(token, "id"), type));
    }
    for (std::size_t i = 0; i < rows_; ++i) {
      if (types_[i] == kUnused) tokens_[i] = "[PAD" + std::to_string(i) + "]";
    }
    return {};
  }

  Status place(const std::string& token, const json& id, TokenType type) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= rows_) {
      return input_error("tokenizer.json: token \"" + printable(token) + "\": expected an id below the " +
                         std::to_string(rows_) + " rows of the embedding, found " + graph::hf::shown(id) +
                         ". Take tokenizer and weights from one checkpoint");
    }
    const auto at = id.get<std::size_t>();
    if (types_[at] != kUnused && tokens_[at] != token) {
      return input_error("tokenizer.json: expected every id once, found " + std::to_string(at) + " at \"" +
                         printable(tokens_[at]) + "\" and \"" + printable(token) + "\". Save the tokenizer again");
    }
    tokens_[at] = token;
    types_[at] = type;
    return {};
  }

  // "a b" or ["a", "b"], in order of rank.
  Result<std::vector<std::pair<std::string, std::string>>> merges() const {
    std::vector<std::pair<std::string, std::string>> out;
    for (const json& merge : child(model_, "merges")) {
      if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        out.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
        continue;
      }
      const std::string both = text(merge);
      const std::size_t space = both.find(' ');
      if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
        return unnamed("model.merges", merge);
      out.emplace_back(both.substr(0, space), both.substr(space + 1));
    }
    return out;
  }

  Result<std::string> pre_tokenizer_name() const {
    const json& whole = child(tokenizer_, "pre_tokenizer");
    const std::vector<json> parts = steps(whole, "pretokenizers");
    const bool ignores_merges = truth(child(model_, "ignore_merges"), false);
    if (parts.empty() || text(child(parts.back(), "type")) != "ByteLevel" ||
        truth(child(parts.back(), "add_prefix_space"), true)) {
      return unnamed("pre_tokenizer", whole);
    }
    const bool splits = truth(child(parts.back(), "use_regex"), true);
    if (parts.size() == 1 && splits && !ignores_merges) return std::string("gpt-2");
    if (parts.size() != 2) return unnamed("pre_tokenizer", whole);
    if (splits && !ignores_merges && text(child(parts[0], "type")) == "Digits" &&
        truth(child(parts[0], "individual_digits"), false)) {
      return std::string("smollm");
    }
    for (const Pattern& pattern : kPatterns) {
      if (!splits && text(child(parts[0], "type")) == "Split" && text(child(parts[0], "behavior")) == "Isolated" &&
          text(child(child(parts[0], "pattern"), "Regex")) == pattern.regex && ignores_merges == pattern.ignores_merges)
        return std::string(pattern.name);
    }
    return unnamed("pre_tokenizer", whole);
  }

  Status write_byte_level() {
    for (const json& step : steps(child(tokenizer_, "normalizer"), "normalizers")) {
      if (text(child(step, "type")) != "NFC") return unnamed("normalizer", step);  // NFC is dropped, as others do
    }
    CTK_TRY(const std::string pre, pre_tokenizer_name());
    CTK_TRY(const auto pairs, merges());
    std::vector<std::string> joined;
    for (const auto& [first, second] : pairs) joined.push_back(first + " " + second);
    keys_.set_text("tokenizer.ggml.model", "gpt2");
    keys_.set_text("tokenizer.ggml.pre", pre);
    keys_.set_texts("tokenizer.ggml.tokens", tokens_);
    keys_.set_i32s("tokenizer.ggml.token_type", types_);
    keys_.set_texts("tokenizer.ggml.merges", joined);
    return {};
  }

  Status write_pieces() {
    bool adds_space = false;
    for (const json& step : steps(child(tokenizer_, "normalizer"), "normalizers")) {
      const std::string type = text(child(step, "type"));
      if (type == "Prepend" && text(child(step, "prepend")) == "\u2581") {
        adds_space = true;
      } else if (type != "Replace" || text(child(step, "content")) != "\u2581" ||
                 text(child(child(step, "pattern"), "String")) != " ") {
        return unnamed("normalizer", step);
      }
    }
    for (const json& step : steps(child(tokenizer_, "pre_tokenizer"), "pretokenizers")) {
      const std::string scheme = text(child(step, "prepend_scheme"));
      if (text(child(step, "type")) != "Metaspace" || text(child(step, "replacement")) != "\u2581" ||
          truth(child(step, "split"), false))
        return unnamed("pre_tokenizer", step);
      adds_space = scheme != "never";
    }
    CTK_TRY(const auto pairs, merges());
    std::map<std::string, std::size_t> rank;
    for (std::size_t i = 0; i < pairs.size(); ++i) rank.emplace(pairs[i].first + pairs[i].second, i);
    std::vector<float> scores(rows_);
    const std::string unknown = text(child(model_, "unk_token"));
    for (std::size_t i = 0; i < rows_; ++i) {
      const auto made = rank.find(tokens_[i]);
      scores[i] = made != rank.end() ? -static_cast<float>(made->second) : -static_cast<float>(pairs.size() + i);
      if (types_[i] == kUnused) continue;
      if (tokens_[i] == unknown) types_[i] = kUnknown;
      if (tokens_[i].size() == 6 && tokens_[i].starts_with("<0x") && tokens_[i].back() == '>') types_[i] = kByte;
    }
    keys_.set_text("tokenizer.ggml.model", "llama");
    keys_.set_text("tokenizer.ggml.pre", "default");
    keys_.set_texts("tokenizer.ggml.tokens", tokens_);
    keys_.set_f32s("tokenizer.ggml.scores", scores);
    keys_.set_i32s("tokenizer.ggml.token_type", types_);
    keys_.set_truth("tokenizer.ggml.add_space_prefix", adds_space);
    return {};
  }

  const json& tokenizer_;
  const json& model_;
  const std::size_t rows_;
  graph::gguf::Metadata& keys_;
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> types_;
};

// Whether encoding puts a token in front by itself, and which: the template of the post-processor.
std::string leading_token(const json& tokenizer) {
  for (const json& step : steps(child(tokenizer, "post_processor"), "processors")) {
    const json& single = child(step, "single");
    if (text(child(step, "type")) == "TemplateProcessing" && single.is_array() && !single.empty())
      return text(child(child(single[0], "SpecialToken"), "id"));
  }
  return {};
}

// An id, or the first of several.
std::optional<std::uint32_t> config_id(const json& value, std::int64_t rows) {
  const json& one = value.is_array() && !value.empty() ? value[0] : value;
  if (!one.is_number_unsigned() || one.get<std::uint64_t>() >= static_cast<std::uint64_t>(rows)) return std::nullopt;
  return one.get<std::uint32_t>();
}

}  // namespace

Status add_tokenizer(const std::string& folder, std::int64_t rows, graph::gguf::Metadata& metadata) {
  const std::filesystem::path path(folder);
  CTK_TRY(const json tokenizer, graph::hf::read_json((path / "tokenizer.json").string(), kMostBytes, kDeepest));
  CTK_TRY(const json config, graph::hf::read_json((path / "config.json").string(), kMostBytes, kDeepest));
  json settings;
  std::error_code ignored;
  if (std::filesystem::exists(path / "tokenizer_config.json", ignored)) {
    CTK_TRY(settings, graph::hf::read_json((path / "tokenizer_config.json").string(), kMostBytes, kDeepest));
  }
  Vocabulary vocabulary(tokenizer, rows, metadata);
  if (auto written = vocabulary.write(); !written) return std::move(written).error().with_context(folder);
  constexpr std::pair<const char*, const char*> kSpecial[] = {
      {"bos", "bos"}, {"eos", "eos"}, {"pad", "padding"}, {"unk", "unknown"}};
  for (const auto& [name, written] : kSpecial) {
    const std::string key = std::string(name) + "_token";
    auto id = config_id(child(config, (key + "_id").c_str()), rows);
    const json& named = child(settings, key.c_str());
    if (!id) id = vocabulary.id_of(named.is_object() ? text(child(named, "content")) : text(named));
    if (id) metadata.set_u32(std::string("tokenizer.ggml.") + written + "_token_id", *id);
  }
  const bool leads = !leading_token(tokenizer).empty();
  metadata.set_truth("tokenizer.ggml.add_bos_token", truth(child(settings, "add_bos_token"), leads));
  if (const std::string chat = text(child(settings, "chat_template")); !chat.empty())
    metadata.set_text("tokenizer.chat_template", chat);
  return {};
}

}  // namespace ctk::exporter
