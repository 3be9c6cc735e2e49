// Layers: what an output channel is made of, and which rows of the weight a channel of the input meets.
#include "graph/coupling/rules.h"

namespace ctk::graph {
namespace {

// Channel j of every one of `groups` blocks, so that the blocks stay of one size.
void unite_across_blocks(Ties& ties, const Tags& tags, std::size_t groups) {
  const std::size_t each = tags.size() / groups;
  for (std::size_t i = each; i < tags.size(); ++i) ties.unite(tags[i % each], tags[i]);
}

void tie_bias(Ties& ties, const Tags& out) {
  const ValueId bias = ties.input(2);
  if (!bias.is_valid() || out.empty()) return;
  if (!ties.is_constant(bias)) {
    ties.unite(out, ties.tags(bias, 0));
    return;
  }
  ties.unite(out, ties.claim(bias, 0, AxisRole::accompanies));
}

bool has_weight(Ties& ties) {
  if (ties.is_constant(ties.input(1)) && !ties.is_constant(ties.input(0))) return true;
  ties.block_inputs("its weight is computed at " + ties.place());
  return false;
}

void keep_batch(Ties& ties) {
  ties.set(ties.output(), 0, ties.tags(ties.input(0), 0));
  for (std::size_t d = 2; d < ties.shape(ties.input(0)).size(); ++d) {
    ties.block(ties.tags(ties.input(0), d), "is convolved over at " + ties.place());
  }
}

}  // namespace

void tie_conv(Ties& ties) {
  if (!has_weight(ties)) return;
  keep_batch(ties);
  const ValueId x = ties.input(0), weight = ties.input(1);
  const auto groups = static_cast<std::size_t>(ties.node().attributes.get_int("group", 1));
  const Tags in = ties.tags(x, 1);
  if (groups == 1) {
    if (!in.empty()) ties.unite(in, ties.claim(weight, 1, AxisRole::consumes));
    const Tags out = ties.claim(weight, 0, AxisRole::produces);
    tie_bias(ties, out);
    ties.set(ties.output(), 1, out);
    return;
  }
  const auto each = static_cast<std::size_t>(ties.shape(weight)[1]);
  if (each == 1) {  // depthwise: a whole group goes with its one input channel
    if (in.empty()) return;
    const Tags out = ties.claim(weight, 0, AxisRole::produces);
    const std::size_t multiplier = out.size() / groups;
    for (std::size_t i = 0; i < out.size(); ++i) ties.unite(in[i / multiplier], out[i]);
    tie_bias(ties, out);
    ties.set(ties.output(), 1, out);
    return;
  }
  if (!in.empty()) {
    unite_across_blocks(ties, in, groups);
    ties.unite(Tags(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(each)),
               ties.claim(weight, 1, AxisRole::consumes));
  }
  const Tags out = ties.claim(weight, 0, AxisRole::produces);
  unite_across_blocks(ties, out, groups);
  tie_bias(ties, out);
  ties.set(ties.output(), 1, out);
}

// Weight [in, out / group, kernel...].
void tie_conv_transpose(Ties& ties) {
  if (!has_weight(ties)) return;
  keep_batch(ties);
  const ValueId x = ties.input(0), weight = ties.input(1);
  const auto groups = static_cast<std::size_t>(ties.node().attributes.get_int("group", 1));
  const Tags in = ties.tags(x, 1);
  const auto out_each = static_cast<std::size_t>(ties.shape(weight)[1]);
  if (groups > 1 && static_cast<std::size_t>(ties.shape(x)[1]) == groups) {
    if (in.empty()) return;
    ties.unite(in, ties.claim(weight, 0, AxisRole::produces));
    Tags out;
    for (Element element : in) out.insert(out.end(), out_each, element);
    tie_bias(ties, out);
    ties.set(ties.output(), 1, out);
    return;
  }
  if (!in.empty()) {
    if (groups > 1) unite_across_blocks(ties, in, groups);
    ties.unite(in, ties.claim(weight, 0, AxisRole::consumes));
  }
  const Tags one = ties.claim(weight, 1, AxisRole::produces);
  Tags out;
  for (std::size_t g = 0; g < groups; ++g) out.insert(out.end(), one.begin(), one.end());
  tie_bias(ties, out);
  ties.set(ties.output(), 1, out);
}

void tie_gemm(Ties& ties) {
  const ValueId a = ties.input(0), b = ties.input(1), c = ties.input(2);
  const std::size_t a_inner = ties.node().attributes.get_int("transA", 0) != 0 ? 0 : 1;
  const std::size_t b_inner = ties.node().attributes.get_int("transB", 0) != 0 ? 1 : 0;
  ties.join({{a, a_inner, AxisRole::consumes}, {b, b_inner, AxisRole::consumes}});
  const auto outer = [&](ValueId id, std::size_t dim) {
    return ties.is_constant(id) ? ties.claim(id, dim, AxisRole::produces) : ties.tags(id, dim);
  };
  ties.set(ties.output(), 0, outer(a, 1 - a_inner));
  ties.set(ties.output(), 1, outer(b, 1 - b_inner));
  if (!c.is_valid()) return;
  const std::size_t rank = ties.shape(c).size();
  for (std::size_t d = 0; d < rank; ++d) {
    const std::size_t to = d + 2 - rank;
    const std::vector<DimOf> operands{{ties.output(), to, AxisRole::accompanies}, {c, d, AxisRole::accompanies}};
    ties.set(ties.output(), to, ties.join(operands));
  }
}

void tie_mat_mul(Ties& ties) {
  const ValueId a = ties.input(0), b = ties.input(1);
  const std::size_t a_rank = ties.shape(a).size(), b_rank = ties.shape(b).size();
  if (a_rank < 2 || b_rank < 2) {
    ties.block_inputs("is multiplied as a vector at " + ties.place());
    return;
  }
  ties.join({{a, a_rank - 1, AxisRole::consumes}, {b, b_rank - 2, AxisRole::consumes}});
  const std::size_t rank = ties.shape(ties.output()).size();
  const auto outer = [&](ValueId id, std::size_t dim) {
    return ties.is_constant(id) ? ties.claim(id, dim, AxisRole::produces) : ties.tags(id, dim);
  };
  ties.set(ties.output(), rank - 2, outer(a, a_rank - 2));
  ties.set(ties.output(), rank - 1, outer(b, b_rank - 1));
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    std::vector<DimOf> operands;
    if (d + a_rank >= rank) operands.push_back({a, d + a_rank - rank, AxisRole::accompanies});
    if (d + b_rank >= rank) operands.push_back({b, d + b_rank - rank, AxisRole::accompanies});
    ties.set(ties.output(), d, ties.join(operands));
  }
}

// A convolution's count of groups follows the channels when each group has one of the input.
void refit_conv(Refit& refit) {
  const Node& before = refit.before();
  const std::int64_t groups = before.attributes.get_int("group", 1);
  if (groups == 1 || refit.size(before.inputs[0], 1) != groups) return;
  refit.node().attributes.set("group", refit.kept(before.inputs[0], 1));
}

}  // namespace ctk::graph
