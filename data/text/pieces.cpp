#include "data/text/pieces.h"

#include <algorithm>

#include "data/text/utf8.h"

namespace ctk::data {
namespace {

struct Part {
  std::size_t begin, end;
  bool is_match;
};

// Joins parts: a match to what stood before it, unless that is a match too.
std::vector<Part> join(const std::vector<Part>& parts, bool joins_equal) {
  std::vector<Part> joined;
  bool was_match = false;
  for (const Part& part : parts) {
    const bool joins = joins_equal ? part.is_match == was_match : part.is_match && !was_match;
    if (joins && !joined.empty()) {
      joined.back().begin = std::min(joined.back().begin, part.begin);
      joined.back().end = std::max(joined.back().end, part.end);
    } else {
      joined.push_back(part);
    }
    was_match = part.is_match;
  }
  return joined;
}

}  // namespace

void cut(std::string_view text, const std::vector<Match>& matches, SplitBehavior behavior, bool inverts,
         std::size_t offset, std::vector<Piece>& out) {
  std::vector<Part> parts;
  parts.reserve(2 * matches.size() + 1);
  std::size_t at = 0;
  for (const Match& match : matches) {
    if (match.begin != at) parts.push_back({at, match.begin, inverts});
    parts.push_back({match.begin, match.end, !inverts});
    at = match.end;
  }
  if (at != text.size()) parts.push_back({at, text.size(), inverts});
  if (behavior == SplitBehavior::contiguous) parts = join(parts, true);
  if (behavior == SplitBehavior::merged_with_previous) parts = join(parts, false);
  if (behavior == SplitBehavior::merged_with_next) {
    std::reverse(parts.begin(), parts.end());
    parts = join(parts, false);
    std::reverse(parts.begin(), parts.end());
  }
  for (const Part& part : parts)
    if (part.begin != part.end && !(behavior == SplitBehavior::removed && part.is_match))
      out.push_back({offset + part.begin, offset + part.end});
}

void rewrite_pieces(Pieces& pieces, const std::function<void(std::string_view, bool, std::string&)>& rewrite) {
  std::string text;
  text.reserve(pieces.text.size() + pieces.text.size() / 4);
  std::vector<Piece> list;
  list.reserve(pieces.list.size());
  for (std::size_t i = 0; i < pieces.list.size(); ++i) {
    const Piece& piece = pieces.list[i];
    const std::size_t begin = text.size();
    if (piece.id >= 0)
      text += pieces.of(piece);
    else
      rewrite(pieces.of(piece), i == 0 && pieces.is_text_at_start, text);
    if (text.size() != begin || piece.id >= 0) list.push_back({begin, text.size(), piece.id});
  }
  pieces.text = std::move(text);
  pieces.list = std::move(list);
}

Status split_pieces(Pieces& pieces, SplitBehavior behavior, bool inverts,
                    const std::function<Status(std::string_view, std::vector<Match>&)>& find) {
  std::vector<Piece> list;
  list.reserve(pieces.list.size() * 2);
  std::vector<Match> matches;
  for (const Piece& piece : pieces.list) {
    if (piece.id >= 0) {
      list.push_back(piece);
      continue;
    }
    matches.clear();
    CTK_CHECK(find(pieces.of(piece), matches));
    cut(pieces.of(piece), matches, behavior, inverts, piece.begin, list);
  }
  const bool keeps_start = !list.empty() && !pieces.list.empty() && list[0].begin == pieces.list[0].begin;
  pieces.is_text_at_start = pieces.is_text_at_start && keeps_start;
  pieces.list = std::move(list);
  return {};
}

void find_characters(std::string_view text, bool (*holds)(char32_t), std::vector<Match>& matches) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.code != kInvalidByte && holds(c.code)) matches.push_back({at, at + c.length});
    at += c.length;
  }
}

void find_text(std::string_view text, std::string_view wanted, std::vector<Match>& matches) {
  for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + wanted.size()))
    matches.push_back({at, at + wanted.size()});
}

}  // namespace ctk::data
