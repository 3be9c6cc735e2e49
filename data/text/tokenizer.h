// Tokenizers: text to ids and back, as the file that came with a model says. Ids equal those of the package
// `tokenizers`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace ctk::data {

// A string that is one token wherever it stands.
struct AddedToken {
  std::string content;
  std::int64_t id = 0;
  bool strips_left = false, strips_right = false;  // takes the white space beside it along
  bool single_word = false;                        // not inside a word
  bool is_normalized = false;                      // looked for in the normalized text
  bool is_special = false;                         // left out by decode() where asked
};

struct EncodeOptions {
  bool add_special_tokens = false;  // those of the file's post-processor (<s>, [CLS], [SEP])
  bool find_special_tokens = true;  // "<s>" in the text is the token, not three characters
};

// Immutable; every member may be called from several threads.
class Tokenizer {
 public:
  struct Body;  // data/text/tokenizer_body.h
  explicit Tokenizer(std::unique_ptr<const Body> body);
  ~Tokenizer();

  // Any bytes are text: where they are no UTF-8 a byte-level model codes them as they are, others by byte tokens or as
  // unknown. A character that a BPE vocabulary lacks is unknown_id(); without one it vanishes, as in `tokenizers`.
  // Padding and truncation are left to the caller. Time is O(n log n). Errors: input (a pattern that backtracks without
  // end).
  Result<std::vector<std::int64_t>> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Bytes that are no UTF-8 come back as they went in. Errors: input (an id that is no token).
  Result<std::string> decode(std::span<const std::int64_t> ids, bool skip_special_tokens = false) const;

  std::int64_t vocabulary_size() const;  // highest id + 1, added tokens included
  std::optional<std::int64_t> id_of(std::string_view token) const;
  std::optional<std::string> token_of(std::int64_t id) const;
  std::span<const AddedToken> added_tokens() const;  // by id
  std::optional<std::int64_t> bos_id() const;
  std::optional<std::int64_t> eos_id() const;
  std::optional<std::int64_t> unknown_id() const;
  std::optional<std::int64_t> padding_id() const;
  const std::string& where() const;        // the file, for messages
  const std::string& fingerprint() const;  // of what the file says

 private:
  std::unique_ptr<const Body> body_;
};

// `path`: a tokenizer.json or a tokenizer.model of sentencepiece, or a folder that holds one (the first where it holds
// both). bos, eos and padding are read from tokenizer_config.json and config.json beside it, where there are any.
// Errors: input (no such file, damaged JSON, unknown components, ids out of range or given twice; one message each).
Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const std::string& path);
// The same from the text of a tokenizer.json; `where` opens messages.
Result<std::shared_ptr<const Tokenizer>> parse_tokenizer(std::string_view json, const std::string& where);

// A vocabulary as GGUF files carry it.
struct TokenizerParts {
  std::string where;                // opens messages
  std::string kind;                 // "gpt2": byte-level BPE, "llama": SentencePiece BPE by scores
  std::string pre;                  // gpt2: how text is cut, one of pre_tokenizer_names(); empty: "default"
  std::vector<std::string> tokens;  // by id
  std::vector<float> scores;        // llama: one a token
  std::vector<std::int32_t> types;  // one a token, or empty: 1 normal, 2 unknown, 3 control, 4 user, 5 unused, 6 byte
  std::vector<std::string> merges;  // gpt2: "left right", the first goes first
  std::optional<std::int64_t> bos, eos, unknown, padding;
  bool adds_bos = false, adds_eos = false;  // with EncodeOptions::add_special_tokens
  bool adds_space = true;                   // llama: a space before the text
};

// Errors: input (unknown kind or pre-tokenizer: lists the known; counts that differ; ids out of range; as above).
Result<std::shared_ptr<const Tokenizer>> make_tokenizer(const TokenizerParts& parts);
std::vector<std::string_view> pre_tokenizer_names();

}  // namespace ctk::data
