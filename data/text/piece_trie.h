// The pieces of a vocabulary as a tree: finds all that start a text in one walk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace ctk::data {

class PieceTrie {
 public:
  PieceTrie() = default;
  // Pieces, none of them empty, with what stands for each (an id of 0 or more); of equal pieces the lowest id counts.
  explicit PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> pieces);

  bool is_empty() const { return nodes_.size() == 1; }
  // Calls visit(length, id) for every piece that starts `text`, the shortest first. Cost: the longest piece.
  template <class Visit>
  void each_prefix(std::string_view text, Visit visit) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<std::uint8_t>(text[i]));
      if (node == 0) return;
      if (nodes_[node].id >= 0) visit(i + 1, nodes_[node].id);
    }
  }
  // Of the longest piece that starts `text`; 0: none does.
  std::size_t longest_prefix(std::string_view text) const {
    std::size_t longest = 0;
    each_prefix(text, [&](std::size_t length, std::int32_t) { longest = length; });
    return longest;
  }

 private:
  struct Node {
    std::uint32_t children = 0;  // the first of them; they stand side by side, by byte
    std::uint16_t count = 0;
    std::uint8_t byte = 0;  // that leads here
    std::int32_t id = -1;   // of the piece that ends here
  };
  std::uint32_t child(std::uint32_t node, std::uint8_t byte) const;  // 0, the root: none
  std::vector<Node> nodes_{1};
  std::vector<std::uint32_t> first_ = std::vector<std::uint32_t>(256);  // the root's children, by byte
};

}  // namespace ctk::data
