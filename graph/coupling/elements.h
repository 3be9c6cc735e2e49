// Channels that must go together: a union of single indices of dimensions, with what is known of each set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ctk::graph {

using Element = std::uint32_t;
// One element an index of a dimension; empty: the dimension keeps its size.
using Tags = std::vector<Element>;

class Elements {
 public:
  Element add();
  std::size_t count() const { return parents_.size(); }
  // The one that stands for the whole set: its smallest member.
  Element find(Element element) const;
  void unite(Element a, Element b);
  // The set must stay; the first reason given is kept.
  void block(Element element, const std::string& reason);
  const std::string& reason(Element element) const { return texts_[reasons_[find(element)]]; }
  // A normalization takes its statistics over the set; the first one named is kept.
  void note_statistics(Element element, const std::string& text);
  const std::string& statistics(Element element) const { return texts_[statistics_[find(element)]]; }

 private:
  std::uint32_t keep(const std::string& text);

  mutable std::vector<Element> parents_;
  std::vector<std::uint32_t> reasons_, statistics_;  // into texts_, of the sets' first members
  std::vector<std::string> texts_{""};
};

}  // namespace ctk::graph
