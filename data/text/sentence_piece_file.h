// A tokenizer.model as sentencepiece writes it: a protocol buffer of type ModelProto.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "data/text/token_model.h"

namespace ctk::data {

struct SentencePieceFile {
  std::string where;
  std::vector<std::string> pieces;  // by id
  std::vector<double> scores;       // by id, single precision
  std::vector<PieceType> types;     // by id
  bool is_bpe = false;              // else Unigram
  bool falls_back_to_bytes = false;
  bool puts_space_behind = false;  // the space that is added goes behind the text, not before it
  std::string bos = "<s>", eos = "</s>", padding = "<pad>";  // pieces
  std::string chars_map;                                     // empty: none
  bool adds_space = true, removes_extra_spaces = true, escapes_spaces = true;
};

// Errors: input (a damaged protocol buffer, a model of type WORD or CHAR, an unknown type of piece, a piece without
// text, a rule for decoding; names the byte).
Result<SentencePieceFile> read_sentence_piece_file(std::string_view bytes, const std::string& where);

}  // namespace ctk::data
