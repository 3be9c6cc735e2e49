// What a text is while it is cut up: bytes, and spans of them in order, some of which are tokens already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "data/text/pattern.h"

namespace ctk::data {

struct Piece {
  std::size_t begin = 0, end = 0;  // bytes of Pieces::text
  std::int64_t id = -1;            // of an added token; -1: still text
};

struct Pieces {
  std::string text;
  std::vector<Piece> list;        // in order
  bool is_text_at_start = false;  // the first piece is text, and the first of the input

  std::string_view of(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

// What becomes of the matches when a piece is cut at them; the rest stays as pieces of its own.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// One cut: matches and what lies between them, in order, covering the text. `inverts`: the roles are swapped.
void cut(std::string_view text, const std::vector<Match>& matches, SplitBehavior behavior, bool inverts,
         std::size_t offset, std::vector<Piece>& out);

// Rewrites every text piece by `rewrite` (old text in, new text out); empty ones vanish.
void rewrite_pieces(Pieces& pieces, const std::function<void(std::string_view, bool is_first, std::string&)>& rewrite);
// Cuts every text piece at the matches that `find` appends (relative to the piece).
Status split_pieces(Pieces& pieces, SplitBehavior behavior, bool inverts,
                    const std::function<Status(std::string_view, std::vector<Match>&)>& find);
// Matches each character for which `holds` by itself.
void find_characters(std::string_view text, bool (*holds)(char32_t), std::vector<Match>& matches);
// Matches `wanted`, not empty, wherever it stands.
void find_text(std::string_view text, std::string_view wanted, std::vector<Match>& matches);

}  // namespace ctk::data
