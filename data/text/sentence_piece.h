// Tokenizers from a tokenizer.model of sentencepiece.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/text/tokenizer_body.h"

namespace ctk::data {

// Whether a file is one: it starts with a piece, where a tokenizer.json starts with a brace.
bool is_sentence_piece(std::string_view bytes);

// Ids equal those of sentencepiece 0.2 with EncodeOptions::find_special_tokens off; with it, control pieces and the
// unknown piece are tokens where they stand in a text, and what lies between them is normalized piece by piece.
// Errors: input (those of read_sentence_piece_file() and CharsMap; no unknown piece or two, a piece given twice, byte
// pieces that are not 256, a score that is not finite).
Result<std::unique_ptr<Tokenizer::Body>> read_sentence_piece(std::string_view bytes, const std::string& where);

}  // namespace ctk::data
