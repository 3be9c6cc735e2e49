// Byte-pair encoding by a list of merges.
// In:  a piece; its characters are the first symbols (with `prefix` before all but the first, `suffix` after the last).
// Out: ids. Cost: O(n log n) for n characters.
// Source: Sennrich et al., Neural Machine Translation of Rare Words with Subword Units, 2016; details (unknown and byte
// tokens, ties) as in the package `tokenizers`.
#include "core/printable.h"
#include "data/text/merge_symbols.h"
#include "data/text/token_model.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

// (left id, right id) -> rank and joint id; open addressing.
class MergeTable {
 public:
  explicit MergeTable(std::size_t count) {
    std::size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    slots_.resize(slots);
  }
  // Of equal pairs the last one counts.
  void set(std::int64_t left, std::int64_t right, std::size_t rank, std::int64_t id) {
    Slot& slot = slots_[find_slot(left, right)];
    slot = {key_of(left, right), static_cast<std::int32_t>(rank), static_cast<std::int32_t>(id)};
  }
  Joint find(std::int64_t left, std::int64_t right) const {
    if (left < 0 || right < 0) return {};
    const Slot& slot = slots_[find_slot(left, right)];
    return {static_cast<double>(slot.rank), slot.id};
  }

 private:
  struct Slot {
    std::uint64_t key = ~std::uint64_t{0};
    std::int32_t rank = 0, id = -1;
  };
  static std::uint64_t key_of(std::int64_t left, std::int64_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
  }
  std::size_t find_slot(std::int64_t left, std::int64_t right) const {
    const std::uint64_t key = key_of(left, right);
    std::size_t at = (key * 0x9E3779B97F4A7C15u >> 32) & (slots_.size() - 1);
    while (slots_[at].id >= 0 && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  std::vector<Slot> slots_;
};

class Bpe : public TokenModel {
 public:
  Bpe(Vocabulary known, BpeOptions options, std::size_t merges) : options_(std::move(options)), merges_(merges) {
    vocabulary = std::move(known);
    for (unsigned byte = 0; byte < 256; ++byte)
      byte_ids_[byte] =
          options_.falls_back_to_bytes ? vocabulary.find(byte_token(static_cast<unsigned char>(byte))) : -1;
  }

  Status add_merges(const std::vector<std::pair<std::string, std::string>>& merges) {
    std::size_t prefix_bytes = options_.prefix.size();
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const auto& [left, right] = merges[rank];
      const std::string joint = left + (right.size() >= prefix_bytes ? right.substr(prefix_bytes) : "");
      for (const std::string* part : {&left, &right, &joint})
        if (vocabulary.find(*part) < 0)
          return input_error(options_.where + ".merges[" + std::to_string(rank) +
                             "]: expected tokens of the vocabulary, " + "found \"" + printable(*part) + "\" (\"" +
                             printable(left) + "\" and \"" + printable(right) +
                             "\"). Take vocabulary and merges of one tokenizer.");
      merges_.set(vocabulary.find(left), vocabulary.find(right), rank, vocabulary.find(joint));
    }
    return {};
  }

  Status encode(std::string_view piece, std::vector<std::int64_t>& ids) const override {
    if (options_.ignores_merges) {
      if (const std::int64_t whole = vocabulary.find(piece); whole >= 0) {
        ids.push_back(whole);
        return {};
      }
    }
    std::vector<Symbol> symbols = first_symbols(piece);
    merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) { return merges_.find(left.id, right.id); });
    for (const Symbol& symbol : symbols)
      if (symbol.is_alive) ids.push_back(symbol.id);
    return {};
  }

 private:
  std::vector<Symbol> first_symbols(std::string_view piece) const {
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    std::size_t waiting = 0;  // 1 + where unknown characters that are not added yet begin; 0: none
    const auto flush = [&](std::size_t at) {
      if (waiting != 0) append_symbol(symbols, *unknown_id, waiting - 1, at);
      waiting = 0;
    };
    std::string decorated;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t end = at + decode_utf8(piece, at).length;
      std::string_view text = piece.substr(at, end - at);
      const bool has_prefix = at != 0 && !options_.prefix.empty();
      const bool has_suffix = end == piece.size() && !options_.suffix.empty();
      if (has_prefix || has_suffix) {
        decorated = (has_prefix ? options_.prefix : "") + std::string(text) + (has_suffix ? options_.suffix : "");
        text = decorated;
      }
      if (const std::int64_t id = vocabulary.find(text); id >= 0) {
        flush(at);
        append_symbol(symbols, id, at, end);
      } else if (!append_bytes(text, at, end, symbols) && unknown_id) {
        if (!options_.fuses_unknown) flush(at);
        if (waiting == 0) waiting = at + 1;
      }
      at = end;
    }
    flush(piece.size());
    return symbols;
  }

  // Unknown characters that wait stay behind these: so does the package `tokenizers`.
  bool append_bytes(std::string_view text, std::size_t begin, std::size_t end, std::vector<Symbol>& symbols) const {
    for (char c : text)
      if (byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
    for (char c : text) append_symbol(symbols, byte_ids_[static_cast<unsigned char>(c)], begin, end);
    return true;
  }

  BpeOptions options_;
  MergeTable merges_;
  std::int64_t byte_ids_[256];  // -1: no such token
};

}  // namespace

std::string byte_token(unsigned char byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

Result<std::unique_ptr<TokenModel>> make_bpe(Vocabulary vocabulary,
                                             const std::vector<std::pair<std::string, std::string>>& merges,
                                             const BpeOptions& options) {
  auto model = std::make_unique<Bpe>(std::move(vocabulary), options, merges.size());
  if (!options.unknown.empty()) {
    const std::int64_t id = model->vocabulary.find(options.unknown);
    if (id < 0)
      return input_error(options.where + ".unk_token: expected a token of the vocabulary, found \"" +
                         printable(options.unknown) + "\". Mend the file.");
    model->unknown_id = id;
  }
  CTK_CHECK(model->add_merges(merges));
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace ctk::data
