#include "data/text/sentence_piece_file.h"

#include "data/text/proto_reader.h"

namespace ctk::data {
namespace {

// Calls read(message) for each of its fields.
template <class Read>
Status each_field(ProtoReader message, Read read) {
  for (;;) {
    CTK_TRY(const bool is_there, message.next());
    if (!is_there) return {};
    CTK_CHECK(read(message));
  }
}

template <class T, class Value>
Status set(T& target, Result<Value> value) {
  CTK_TRY(Value got, std::move(value));
  target = T(std::move(got));
  return {};
}

Status read_piece(const ProtoReader& message, SentencePieceFile& file) {
  std::string piece;
  float score = 0;
  std::int64_t type = 1;
  CTK_CHECK(each_field(message, [&](const ProtoReader& field) -> Status {
    if (field.field() == 1) return set(piece, field.text("pieces.piece"));
    if (field.field() == 2) return set(score, field.real("pieces.score"));
    if (field.field() != 3) return {};
    CTK_CHECK(set(type, field.integer("pieces.type")));
    if (type >= 1 && type <= 6) return {};
    return input_error(field.where("pieces.type") + ": expected 1 to 6, found " + std::to_string(type) +
                       ". Fetch the file again.");
  }));
  if (piece.empty())
    return input_error(file.where + ": pieces[" + std::to_string(file.pieces.size()) +
                       "].piece: expected text, found none. Fetch the file again.");
  file.pieces.push_back(std::move(piece));
  file.scores.push_back(double{score});
  file.types.push_back(static_cast<PieceType>(type));
  return {};
}

Status read_trainer(const ProtoReader& message, SentencePieceFile& file) {
  return each_field(message, [&](const ProtoReader& field) -> Status {
    switch (field.field()) {
      case 3: {
        CTK_TRY(const std::int64_t type, field.integer("trainer_spec.model_type"));
        file.is_bpe = type == 2;
        if (type == 1 || type == 2) return {};
        return input_error(field.where("trainer_spec.model_type") + ": expected 1 (UNIGRAM) or 2 (BPE), found " +
                           std::to_string(type) +
                           (type == 3   ? " (WORD)"
                            : type == 4 ? " (CHAR)"
                                        : "") +
                           ". Take a model of one of these types.");
      }
      case 24:
        return set(file.puts_space_behind, field.flag("trainer_spec.treat_whitespace_as_suffix"));
      case 35:
        return set(file.falls_back_to_bytes, field.flag("trainer_spec.byte_fallback"));
      case 46:
        return set(file.bos, field.text("trainer_spec.bos_piece"));
      case 47:
        return set(file.eos, field.text("trainer_spec.eos_piece"));
      case 48:
        return set(file.padding, field.text("trainer_spec.pad_piece"));
      default:
        return {};
    }
  });
}

Status read_normalizer(const ProtoReader& message, SentencePieceFile& file) {
  return each_field(message, [&](const ProtoReader& field) -> Status {
    switch (field.field()) {
      case 2:
        return set(file.chars_map, field.text("normalizer_spec.precompiled_charsmap"));
      case 3:
        return set(file.adds_space, field.flag("normalizer_spec.add_dummy_prefix"));
      case 4:
        return set(file.removes_extra_spaces, field.flag("normalizer_spec.remove_extra_whitespaces"));
      case 5:
        return set(file.escapes_spaces, field.flag("normalizer_spec.escape_whitespaces"));
      default:
        return {};
    }
  });
}

Status read_denormalizer(const ProtoReader& message) {
  return each_field(message, [&](const ProtoReader& field) -> Status {
    if (field.field() != 2) return {};
    CTK_TRY(const std::string_view map, field.text("denormalizer_spec.precompiled_charsmap"));
    if (map.empty()) return {};
    return input_error(field.where("denormalizer_spec.precompiled_charsmap") + ": expected none, found " +
                       std::to_string(map.size()) + " bytes. Take a model whose texts are not rewritten when decoded.");
  });
}

}  // namespace

Result<SentencePieceFile> read_sentence_piece_file(std::string_view bytes, const std::string& where) {
  SentencePieceFile file;
  file.where = where;
  CTK_CHECK(each_field(ProtoReader(bytes, where), [&](const ProtoReader& field) -> Status {
    if (field.field() < 1 || field.field() > 5 || field.field() == 4) return {};
    constexpr const char* kNames[] = {"pieces", "trainer_spec", "normalizer_spec", "", "denormalizer_spec"};
    CTK_TRY(const ProtoReader message, field.message(kNames[field.field() - 1]));
    switch (field.field()) {
      case 1:
        return read_piece(message, file);
      case 2:
        return read_trainer(message, file);
      case 3:
        return read_normalizer(message, file);
      default:
        return read_denormalizer(message);
    }
  }));
  if (file.pieces.empty())
    return input_error(where + ": pieces: expected at least one, found none. Fetch the file again.");
  return file;
}

}  // namespace ctk::data
