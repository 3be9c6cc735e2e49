// Operators that move elements: channels are followed to where they end up, and sizes written in the model follow them.
#include <algorithm>

#include "graph/coupling/rules.h"

namespace ctk::graph {
namespace {

std::vector<bool> axes_of(const Ties& ties, std::size_t input, std::size_t rank, bool all_when_absent) {
  const auto axes = ties.integers(input);
  std::vector<bool> chosen(rank, all_when_absent && (!axes || axes->empty()));
  if (axes) {
    for (std::int64_t axis : *axes) chosen[Ties::axis_of(axis, rank)] = true;
  }
  return chosen;
}

// Elements [low, low + kept) of a padded dimension stay, with `before` and `after` new ones around; below zero crops.
struct Padding {
  std::size_t axis = 0, entry = 0;  // entry of its begin in `pads`
  std::int64_t before = 0, after = 0;
};

std::vector<Padding> paddings_of(const Ties& ties) {
  const auto pads = ties.integers(1);
  std::vector<Padding> found;
  if (!pads) return found;
  const std::size_t rank = ties.shape(ties.input(0)).size(), count = pads->size() / 2;
  const auto axes = ties.integers(3);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t axis = axes ? Ties::axis_of((*axes)[i], rank) : i;
    found.push_back({axis, i, (*pads)[i], (*pads)[count + i]});
  }
  return found;
}

// First element taken along each axis that a Slice names, with its step.
struct Cutting {
  std::size_t axis = 0, entry = 0;
  std::int64_t start = 0, step = 1;
};

std::vector<Cutting> cuttings_of(const Ties& ties) {
  std::vector<Cutting> found;
  const auto starts = ties.integers(1), axes = ties.integers(3), steps = ties.integers(4);
  const Shape& shape = ties.shape(ties.input(0));
  for (std::size_t i = 0; starts && i < starts->size(); ++i) {
    const std::size_t axis = axes ? Ties::axis_of((*axes)[i], shape.size()) : i;
    std::int64_t start = (*starts)[i];
    if (start < 0) start += shape[axis];
    found.push_back({axis, i, std::clamp<std::int64_t>(start, 0, shape[axis]), steps ? (*steps)[i] : 1});
  }
  return found;
}

}  // namespace

void tie_transpose(Ties& ties) {
  const ValueId x = ties.input(0);
  const std::size_t rank = ties.shape(x).size();
  const auto order = ties.node().attributes.get_ints("perm");
  for (std::size_t d = 0; d < rank; ++d) {
    const std::size_t source = order.empty() ? rank - 1 - d : Ties::axis_of(order[d], rank);
    ties.set(ties.output(), d, ties.tags(x, source));
  }
}

void tie_squeeze(Ties& ties) {
  const ValueId x = ties.input(0);
  const Shape& shape = ties.shape(x);
  const auto axes = ties.integers(1);
  const std::vector<bool> is_named = axes_of(ties, 1, shape.size(), false);
  std::size_t to = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (axes ? is_named[d] : shape[d] == 1)
      ties.block(ties.tags(x, d), "is all there is at " + ties.place());
    else
      ties.set(ties.output(), to++, ties.tags(x, d));
  }
}

void tie_unsqueeze(Ties& ties) {
  const ValueId x = ties.input(0);
  const std::size_t rank = ties.shape(ties.output()).size();
  const std::vector<bool> is_new = axes_of(ties, 1, rank, false);
  std::size_t from = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    if (!is_new[d]) ties.set(ties.output(), d, ties.tags(x, from++));
  }
}

void tie_expand(Ties& ties) {
  const ValueId x = ties.input(0);
  const Shape& from = ties.shape(x);
  const Shape& to = ties.shape(ties.output());
  for (std::size_t d = 0; d < from.size(); ++d) {
    const std::size_t at = d + to.size() - from.size();
    if (from[d] == to[at])
      ties.set(ties.output(), at, ties.tags(x, d));
    else
      ties.block(ties.tags(x, d), "is repeated at " + ties.place());
  }
}

void tie_resize(Ties& ties) {
  const ValueId x = ties.input(0);
  for (std::size_t d = 0; d < ties.shape(x).size(); ++d) {
    if (d < 2 && ties.shape(x)[d] == ties.shape(ties.output())[d])
      ties.set(ties.output(), d, ties.tags(x, d));
    else
      ties.block(ties.tags(x, d), "is resized at " + ties.place());
  }
}

void tie_reduce(Ties& ties) {
  const ValueId x = ties.input(0);
  const std::size_t rank = ties.shape(x).size();
  const bool does_nothing = ties.node().attributes.get_int("noop_with_empty_axes", 0) != 0;
  const std::vector<bool> is_reduced = axes_of(ties, 1, rank, !does_nothing);
  const bool keeps = ties.node().attributes.get_int("keepdims", 1) != 0;
  std::size_t to = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    if (is_reduced[d]) {
      ties.block(ties.tags(x, d), "is reduced over at " + ties.place());
      to += keeps ? 1 : 0;
    } else {
      ties.set(ties.output(), to++, ties.tags(x, d));
    }
  }
}

void tie_concat(Ties& ties) {
  const std::size_t rank = ties.shape(ties.output()).size();
  const std::size_t axis = Ties::axis_of(ties.node().attributes.get_int("axis", 0), rank);
  for (std::size_t d = 0; d < rank; ++d) {
    std::vector<DimOf> operands;
    bool has_channels = false;
    for (ValueId id : ties.node().inputs) {
      operands.push_back({id, d});
      has_channels |= !ties.tags(id, d).empty();
    }
    if (d != axis) {
      ties.set(ties.output(), d, ties.join(operands));
      continue;
    }
    if (!has_channels) continue;
    Tags all;
    for (const DimOf& operand : operands) {
      Tags part = ties.tags(operand.value, d);
      if (ties.is_constant(operand.value)) {
        ties.block(part, "is joined to others at " + ties.place());
        part.clear();
      }
      const auto size = static_cast<std::size_t>(ties.shape(operand.value)[d]);
      while (part.size() < size) {
        part.push_back(ties.fresh());
        ties.block({part.back()}, "is not made by a layer where it enters " + ties.place());
      }
      all.insert(all.end(), part.begin(), part.end());
    }
    ties.set(ties.output(), d, std::move(all));
  }
}

void tie_split(Ties& ties) {
  const ValueId x = ties.input(0);
  const std::size_t rank = ties.shape(x).size();
  const std::size_t axis = Ties::axis_of(ties.node().attributes.get_int("axis", 0), rank);
  for (std::size_t d = 0; d < rank; ++d) {
    const Tags tags = ties.tags(x, d);
    std::size_t from = 0;
    for (ValueId out : ties.node().outputs) {
      if (d != axis || tags.empty()) {
        ties.set(out, d, tags);
        continue;
      }
      const auto size = static_cast<std::size_t>(ties.shape(out)[d]);
      const auto begin = tags.begin() + static_cast<std::ptrdiff_t>(from);
      ties.set(out, d, Tags(begin, begin + static_cast<std::ptrdiff_t>(size)));
      from += size;
    }
  }
}

void tie_slice(Ties& ties) {
  const ValueId x = ties.input(0);
  const Shape& shape = ties.shape(x);
  for (std::size_t d = 0; d < shape.size(); ++d) ties.set(ties.output(), d, ties.tags(x, d));
  for (const Cutting& cutting : cuttings_of(ties)) {
    const Tags tags = ties.tags(x, cutting.axis);
    const auto size = static_cast<std::size_t>(ties.shape(ties.output())[cutting.axis]);
    if (tags.empty() || size == tags.size()) continue;
    if (cutting.step != 1 || size == 0) {
      ties.block(tags, "is taken in steps at " + ties.place());
      ties.set(ties.output(), cutting.axis, {});
      continue;
    }
    const auto begin = tags.begin() + cutting.start;
    ties.set(ties.output(), cutting.axis, Tags(begin, begin + static_cast<std::ptrdiff_t>(size)));
  }
}

void tie_pad(Ties& ties) {
  const ValueId x = ties.input(0);
  const bool is_constant = ties.node().attributes.get_string("mode", "constant") == "constant";
  for (std::size_t d = 0; d < ties.shape(x).size(); ++d) ties.set(ties.output(), d, ties.tags(x, d));
  for (const Padding& padding : paddings_of(ties)) {
    const Tags tags = ties.tags(x, padding.axis);
    if (tags.empty() || (padding.before == 0 && padding.after == 0)) continue;
    if (!is_constant) {
      ties.block(tags, "is repeated at " + ties.place());
      ties.set(ties.output(), padding.axis, {});
      continue;
    }
    Tags all;
    for (std::int64_t i = 0; i < padding.before; ++i) all.push_back(ties.fresh());
    const std::int64_t low = std::max<std::int64_t>(-padding.before, 0);
    const auto high = static_cast<std::int64_t>(tags.size()) - std::max<std::int64_t>(-padding.after, 0);
    all.insert(all.end(), tags.begin() + low, tags.begin() + high);
    for (std::int64_t i = 0; i < padding.after; ++i) all.push_back(ties.fresh());
    ties.set(ties.output(), padding.axis, std::move(all));
  }
}

// A table of rows, as of an embedding: the rows stay, what each holds are channels.
void tie_gather(Ties& ties) {
  const ValueId data = ties.input(0), indices = ties.input(1);
  const Shape& shape = ties.shape(data);
  const std::size_t axis = Ties::axis_of(ties.node().attributes.get_int("axis", 0), shape.size());
  const std::size_t index_rank = ties.shape(indices).size();
  const bool is_table = ties.is_constant(data) && ties.graph().value(data).dtype == DType::f32;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d == axis) {
      ties.block(ties.tags(data, d), "is picked from at " + ties.place());
      continue;
    }
    const Tags tags = is_table ? ties.claim(data, d, AxisRole::produces) : ties.tags(data, d);
    ties.set(ties.output(), d < axis ? d : d + index_rank - 1, tags);
  }
  for (std::size_t d = 0; d < index_rank; ++d) ties.set(ties.output(), axis + d, ties.tags(indices, d));
}

void tie_sizes(Ties&) {}

void refit_resize(Refit& refit) {
  auto sizes = refit.ties().integers(3);
  const ValueId out = refit.before().outputs[0];
  if (!sizes || sizes->empty()) return;
  const auto axes = refit.before().attributes.get_ints("axes");
  bool is_changed = false;
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    const std::size_t d = axes.empty() ? i : Ties::axis_of(axes[i], refit.ties().shape(out).size());
    if (!refit.is_cut(out, d)) continue;
    (*sizes)[i] = refit.kept(out, d);
    is_changed = true;
  }
  if (is_changed) refit.set_integers(3, *sizes);
}

void refit_split(Refit& refit) {
  const Node& before = refit.before();
  const std::size_t rank = refit.ties().shape(before.inputs[0]).size();
  const std::size_t axis = Ties::axis_of(before.attributes.get_int("axis", 0), rank);
  if (!refit.is_cut(before.inputs[0], axis)) return;
  std::vector<std::int64_t> sizes;
  for (ValueId out : before.outputs) sizes.push_back(refit.kept(out, axis));
  refit.node().attributes.erase("num_outputs");
  refit.set_integers(1, sizes);
}

void refit_slice(Refit& refit) {
  auto starts = refit.ties().integers(1), ends = refit.ties().integers(2);
  if (!starts || !ends) return;
  const ValueId x = refit.before().inputs[0], out = refit.before().outputs[0];
  bool is_changed = false;
  for (const Cutting& cutting : cuttings_of(refit.ties())) {
    if (!refit.is_cut(x, cutting.axis) || refit.size(x, cutting.axis) == refit.size(out, cutting.axis)) continue;
    (*starts)[cutting.entry] = refit.kept(x, cutting.axis, cutting.start);
    (*ends)[cutting.entry] = refit.kept(x, cutting.axis, cutting.start + refit.size(out, cutting.axis));
    is_changed = true;
  }
  if (!is_changed) return;
  refit.set_integers(1, *starts);
  refit.set_integers(2, *ends);
}

void refit_pad(Refit& refit) {
  auto pads = refit.ties().integers(1);
  if (!pads) return;
  const ValueId x = refit.before().inputs[0], out = refit.before().outputs[0];
  bool is_changed = false;
  for (const Padding& padding : paddings_of(refit.ties())) {
    const std::size_t d = padding.axis;
    if (!refit.is_cut(x, d) && !refit.is_cut(out, d)) continue;
    const std::int64_t size = refit.size(out, d), from = refit.size(x, d);
    (*pads)[padding.entry] =
        padding.before >= 0 ? refit.kept(out, d, padding.before) : -refit.kept(x, d, -padding.before);
    (*pads)[padding.entry + pads->size() / 2] = padding.after >= 0
                                                    ? refit.kept(out, d) - refit.kept(out, d, size - padding.after)
                                                    : -(refit.kept(x, d) - refit.kept(x, d, from + padding.after));
    is_changed = true;
  }
  if (is_changed) refit.set_integers(1, *pads);
}

}  // namespace ctk::graph
