// Token samples of a text file: windows of one token stream, or lines.
//
// Bytes are read as they are ("\r\n" stays two characters inside a window). Windows: the whole file is one text; the
// tokens that are left at its end and fill no window are dropped. Lines: a line ends at "\n" or "\r\n", which is no
// part of it; lines of fewer than two tokens, in which nothing can be predicted, are left out. Pairs: a line is SCORE
// TAB TEXT TAB TEXT and makes two samples, one behind the other, with one label: see pair_label().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "data/text/text_spec.h"
#include "data/text/tokenizer.h"

namespace ctk::data {

// Immutable; every member may be called from several threads.
class TokenSource {
 public:
  // Errors: config (context below 2, neither tokenizer nor path), input (no such file, no text, a text shorter than one
  // window: names both lengths; `bos` with a tokenizer that names none; those of open_tokenizer()).
  static Result<std::shared_ptr<const TokenSource>> open(const std::string& path, const TextSpec& spec);

  std::size_t count() const { return samples_.size(); }  // at least 1
  // [2..context] token ids, BOS first where asked for.
  std::span<const std::int64_t> ids(std::size_t index) const;
  // Of the ids without BOS and special tokens; of a line before it is cut, so that two contexts find the same line.
  std::uint64_t hash(std::size_t index) const { return samples_[index].hash; }
  const std::vector<std::int64_t>& labels() const { return labels_; }  // of pairs, else empty
  std::string where(std::size_t index) const;             // "wiki.txt tokens 512 to 1023", "stories.txt line 3"
  std::size_t total_tokens() const { return total_; }     // of the text, without BOS
  std::size_t short_lines() const { return too_short_; }  // lines of one token that were left out
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  struct Sample {
    std::size_t begin = 0, end = 0;  // of ids_, BOS included, before cutting
    std::size_t place = 0;           // windows: first token of the stream; lines: number of the line, from 1
    std::uint64_t hash = 0;
  };
  TokenSource() = default;
  Status cut_windows(std::string_view text);
  Status cut_lines(std::string_view text);
  Status cut_pairs(std::string_view text);
  // One line or part of one. Errors: those of the tokenizer.
  Status add_line(std::string_view line, std::size_t number);
  std::vector<std::int64_t> wrapped(std::string_view line, const std::vector<std::int64_t>& ids) const;
  void append(std::span<const std::int64_t> ids, std::size_t place);

  std::string path_, name_;
  TextSpec spec_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::int64_t> ids_;
  std::vector<Sample> samples_;
  std::vector<std::int64_t> labels_;
  std::size_t total_ = 0, too_short_ = 0;
};

}  // namespace ctk::data
