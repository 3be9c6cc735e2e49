// Reshape and Flatten: channels that are joined with other dimensions become blocks of features, those that are parted
// go by whole rows.
#include "graph/coupling/rules.h"

namespace ctk::graph {
namespace {

// Dimensions of more than one element of both shapes, cut where the products agree: [8, 4, 4] and [32, 4] give
// {8, 4 | 32} and {4 | 4}.
struct Segment {
  std::vector<std::size_t> from, to;
};

std::vector<Segment> segments_of(const Shape& a, const Shape& b) {
  std::vector<Segment> segments;
  std::size_t i = 0, j = 0;
  const auto skip_ones = [](const Shape& shape, std::size_t& at) {
    while (at < shape.size() && shape[at] == 1) ++at;
  };
  for (;;) {
    skip_ones(a, i), skip_ones(b, j);
    if (i >= a.size() || j >= b.size()) return segments;
    Segment segment{{i}, {j}};
    std::int64_t left = a[i++], right = b[j++];
    while (left != right) {
      if (left < right) {
        if (i >= a.size()) return segments;
        segment.from.push_back(i), left *= a[i++];
      } else {
        if (j >= b.size()) return segments;
        segment.to.push_back(j), right *= b[j++];
      }
    }
    segments.push_back(std::move(segment));
  }
}

// The coordinate along dimension `which` of flat position `at` in a block of these sizes.
std::size_t coordinate(const Shape& shape, const std::vector<std::size_t>& dims, std::size_t which, std::size_t at) {
  for (std::size_t d = dims.size() - 1; d > which; --d) at /= static_cast<std::size_t>(shape[dims[d]]);
  return at % static_cast<std::size_t>(shape[dims[which]]);
}

void tie_merge(Ties& ties, const Segment& segment, std::size_t tracked) {
  const ValueId x = ties.input(0);
  const Shape& shape = ties.shape(x);
  const Tags& tags = ties.tags(x, segment.from[tracked]);
  Tags flat(static_cast<std::size_t>(ties.shape(ties.output())[segment.to[0]]));
  for (std::size_t p = 0; p < flat.size(); ++p) flat[p] = tags[coordinate(shape, segment.from, tracked, p)];
  ties.set(ties.output(), segment.to[0], std::move(flat));
}

// Channels that become two dimensions go by whole rows of one of them: of the one that is tied so already, else of the
// first (heads before their elements).
void tie_parting(Ties& ties, const Segment& segment) {
  const Tags flat = ties.tags(ties.input(0), segment.from[0]);
  const Shape& shape = ties.shape(ties.output());
  std::size_t chosen = 0;
  for (std::size_t which = 0; which < segment.to.size(); ++which) {
    std::vector<Element> first(static_cast<std::size_t>(shape[segment.to[which]]));
    std::vector<bool> is_seen(first.size(), false);
    bool is_tied = true;
    for (std::size_t p = 0; p < flat.size() && is_tied; ++p) {
      const std::size_t at = coordinate(shape, segment.to, which, p);
      if (is_seen[at]) is_tied = ties.is_one(first[at], flat[p]);
      is_seen[at] = true, first[at] = flat[p];
    }
    if (!is_tied) continue;
    chosen = which;
    break;
  }
  Tags tags(static_cast<std::size_t>(shape[segment.to[chosen]]));
  std::vector<bool> is_seen(tags.size(), false);
  for (std::size_t p = 0; p < flat.size(); ++p) {
    const std::size_t at = coordinate(shape, segment.to, chosen, p);
    if (is_seen[at])
      ties.unite(tags[at], flat[p]);
    else
      tags[at] = flat[p];
    is_seen[at] = true;
  }
  ties.set(ties.output(), segment.to[chosen], std::move(tags));
}

}  // namespace

void tie_reshape(Ties& ties) {
  const ValueId x = ties.input(0);
  const Shape& from = ties.shape(x);
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (from[d] == 1) ties.block(ties.tags(x, d), "is all there is at " + ties.place());
  }
  for (const Segment& segment : segments_of(from, ties.shape(ties.output()))) {
    std::size_t count = 0, tracked = 0;
    for (std::size_t i = 0; i < segment.from.size(); ++i) {
      if (ties.tags(x, segment.from[i]).empty()) continue;
      tracked = i, ++count;
    }
    if (count == 0) continue;
    if (segment.from.size() == 1 && segment.to.size() == 1) {
      ties.set(ties.output(), segment.to[0], ties.tags(x, segment.from[0]));
    } else if (segment.to.size() == 1 && count == 1) {
      tie_merge(ties, segment, tracked);
    } else if (segment.from.size() == 1) {
      tie_parting(ties, segment);
    } else {
      for (std::size_t d : segment.from)
        ties.block(ties.tags(x, d), "is mixed with another dimension at " + ties.place());
    }
  }
}

void refit_target_shape(Refit& refit) {
  auto target = refit.ties().integers(1);
  if (!target || !refit.ties().is_constant(refit.before().inputs[1]))
    return;  // computed as the model runs, from sizes that have changed by then
  const ValueId out = refit.before().outputs[0];
  const std::size_t missing = refit.ties().shape(out).size() - target->size();
  bool is_changed = false;
  for (std::size_t i = 0; i < target->size(); ++i) {
    if ((*target)[i] <= 1 || !refit.is_cut(out, i + missing)) continue;
    (*target)[i] = refit.kept(out, i + missing);
    is_changed = true;
  }
  if (is_changed) refit.set_integers(1, *target);
}

}  // namespace ctk::graph
