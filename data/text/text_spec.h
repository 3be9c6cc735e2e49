// How a text file becomes samples, as the pipeline file says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace ctk::data {

class Tokenizer;

struct TextSpec {
  std::int64_t context = 0;  // tokens in a sample, at least 2
  bool lines = false;        // each line is a sample, cut to `context`; else the text is cut into windows of `context`
  bool pairs = false;  // each line is SCORE TAB TEXT TAB TEXT: two samples, their label says the pair and the score
  bool special_tokens = false;  // lines and pairs: those of the tokenizer around each ([CLS], [SEP]); kept by cutting
  bool bos = false;             // each sample starts with the tokenizer's BOS, which counts as one of `context`
  std::optional<std::int64_t> windows;         // at most so many samples after SourceSpec::skip
  std::string tokenizer_path;                  // opened where `tokenizer` is not there
  std::shared_ptr<const Tokenizer> tokenizer;  // for instance the model's
};

}  // namespace ctk::data
