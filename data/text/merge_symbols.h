// The loop that byte-pair encodings share: joins neighbours in order of rank until none is left to join.
// Cost: O(n log n) for n symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

namespace ctk::data {

struct Symbol {
  std::int64_t id = -1;
  std::size_t begin = 0, end = 0;         // bytes of the piece
  std::int64_t previous = -1, next = -1;  // -1: none
  bool is_alive = true;
};

struct Joint {
  double rank = 0;       // lower goes first, ties to the left
  std::int64_t id = -1;  // of the joint symbol; -1: the two do not join
};

inline void append_symbol(std::vector<Symbol>& symbols, std::int64_t id, std::size_t begin, std::size_t end) {
  const auto at = static_cast<std::int64_t>(symbols.size());
  if (at > 0) symbols.back().next = at;
  symbols.push_back({id, begin, end, at - 1, -1, true});
}

struct IgnoreFound {
  void operator()(const Symbol&, const Symbol&, std::int64_t) const {}
};

// joint_of(left, right) -> Joint. Symbols that were joined to the left are no longer alive.
// on_found(left, right, id) is called for each pair that could be joined, when it comes to stand side by side.
template <class JointOf, class OnFound = IgnoreFound>
void merge_symbols(std::vector<Symbol>& symbols, const JointOf& joint_of, const OnFound& on_found = {}) {
  struct Entry {
    double rank;
    std::int64_t at, id;
    bool operator<(const Entry& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  std::vector<Entry> found;
  const auto look = [&](std::int64_t at) {
    const Symbol& left = symbols[static_cast<std::size_t>(at)];
    const Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    const Joint joint = joint_of(left, right);
    if (joint.id >= 0) on_found(left, right, joint.id);
    return Entry{joint.rank, at, joint.id};
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
    if (const Entry entry = look(static_cast<std::int64_t>(i)); entry.id >= 0) found.push_back(entry);
  std::priority_queue<Entry> queue({}, std::move(found));
  while (!queue.empty()) {
    const Entry top = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<std::size_t>(top.at)];
    if (!left.is_alive || left.next < 0) continue;
    Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    if (joint_of(left, right).id != top.id) continue;  // one of the two has changed since
    left.id = top.id;
    left.end = right.end;
    left.next = right.next;
    right.is_alive = false;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = top.at;
    const auto push = [&](std::int64_t at) {
      if (const Entry entry = look(at); entry.id >= 0) queue.push(entry);
    };
    if (left.previous >= 0) push(left.previous);
    if (left.next >= 0) push(top.at);
  }
}

}  // namespace ctk::data
