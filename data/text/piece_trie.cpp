#include "data/text/piece_trie.h"

#include <algorithm>

namespace ctk::data {

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> pieces) {
  std::sort(pieces.begin(), pieces.end());
  struct Range {  // pieces that start alike, `depth` bytes of them, and their node
    std::size_t begin, end, depth;
    std::uint32_t node;
  };
  std::vector<Range> ranges;
  if (!pieces.empty()) ranges.push_back({0, pieces.size(), 0, 0});
  for (std::size_t next = 0; next < ranges.size(); ++next) {
    auto [begin, end, depth, node] = ranges[next];
    if (pieces[begin].first.size() == depth) nodes_[node].id = pieces[begin].second;
    while (begin < end && pieces[begin].first.size() == depth) ++begin;
    nodes_[node].children = static_cast<std::uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = pieces[begin].first[depth];
      const std::size_t first = begin;
      while (begin < end && pieces[begin].first[depth] == byte) ++begin;
      ranges.push_back({first, begin, depth + 1, static_cast<std::uint32_t>(nodes_.size())});
      nodes_.push_back({0, 0, static_cast<std::uint8_t>(byte), -1});
      ++nodes_[node].count;
    }
  }
  for (std::uint32_t i = 0; i < nodes_[0].count; ++i)
    first_[nodes_[nodes_[0].children + i].byte] = nodes_[0].children + i;
}

std::uint32_t PieceTrie::child(std::uint32_t node, std::uint8_t byte) const {
  if (node == 0) return first_[byte];
  const auto begin = nodes_.begin() + nodes_[node].children;
  const auto end = begin + nodes_[node].count;
  const auto at = std::lower_bound(begin, end, byte, [](const Node& child, std::uint8_t b) { return child.byte < b; });
  return at != end && at->byte == byte ? static_cast<std::uint32_t>(at - nodes_.begin()) : 0;
}

}  // namespace ctk::data
