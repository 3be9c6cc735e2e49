// What a tokenizer is made of, in the order a text goes through.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/text/added_tokens.h"
#include "data/text/decoder.h"
#include "data/text/normalizer.h"
#include "data/text/pre_tokenizer.h"
#include "data/text/token_model.h"
#include "data/text/tokenizer.h"

namespace ctk::data {

struct Tokenizer::Body {
  std::string where, fingerprint;
  AddedTokens raw;  // looked for in the text as it came
  std::vector<Normalizer> normalizers;
  AddedTokens normalized;  // looked for in what the normalizers made of it
  std::vector<PreTokenizer> pre_tokenizers;
  std::unique_ptr<TokenModel> model;
  std::vector<std::int64_t> prefix, suffix;  // special tokens around the text
  std::vector<Decoder> decoders;

  std::vector<AddedToken> added;  // by id
  Vocabulary added_vocabulary;
  std::optional<std::int64_t> bos, eos, padding;

  std::int64_t find(std::string_view token) const {  // -1: no such token
    const std::int64_t id = added_vocabulary.find(token);
    return id >= 0 ? id : model->vocabulary.find(token);
  }
  const std::string* token(std::int64_t id) const {  // nullptr: no such id
    const std::string* text = added_vocabulary.token(id);
    return text != nullptr ? text : model->vocabulary.token(id);
  }
  // Files the token under raw or normalized. Errors: input (id out of range, taken, or not the vocabulary's).
  Status add(AddedToken token, const std::string& token_where);
};

}  // namespace ctk::data
