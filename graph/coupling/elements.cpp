#include "graph/coupling/elements.h"

#include <algorithm>

namespace ctk::graph {

Element Elements::add() {
  parents_.push_back(static_cast<Element>(parents_.size()));
  reasons_.push_back(0);
  statistics_.push_back(0);
  return parents_.back();
}

Element Elements::find(Element element) const {
  while (parents_[element] != element) {
    parents_[element] = parents_[parents_[element]];
    element = parents_[element];
  }
  return element;
}

void Elements::unite(Element a, Element b) {
  a = find(a), b = find(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);
  parents_[b] = a;
  if (reasons_[a] == 0) reasons_[a] = reasons_[b];
  if (statistics_[a] == 0) statistics_[a] = statistics_[b];
}

void Elements::block(Element element, const std::string& reason) {
  std::uint32_t& known = reasons_[find(element)];
  if (known == 0) known = keep(reason);
}

void Elements::note_statistics(Element element, const std::string& text) {
  std::uint32_t& known = statistics_[find(element)];
  if (known == 0) known = keep(text);
}

std::uint32_t Elements::keep(const std::string& text) {
  if (texts_.back() != text) texts_.push_back(text);  // one node blocks many elements in a row
  return static_cast<std::uint32_t>(texts_.size() - 1);
}

}  // namespace ctk::graph
