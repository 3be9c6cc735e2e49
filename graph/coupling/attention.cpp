// Attention and what stands before it: a head of keys and values goes with all heads of queries that read it.
#include <algorithm>

#include "graph/coupling/rules.h"

namespace ctk::graph {
namespace {

// [B, T, heads * size]: the channels of head h are [h * size, (h + 1) * size).
void unite_heads(Ties& ties, const Tags& tags, std::size_t heads) {
  const std::size_t size = tags.size() / heads;
  for (std::size_t i = 0; i < tags.size(); ++i) ties.unite(tags[i / size * size], tags[i]);
}

Tags one_a_head(const Tags& tags, std::size_t heads) {
  Tags first;
  for (std::size_t h = 0; h < heads && !tags.empty(); ++h) first.push_back(tags[h * (tags.size() / heads)]);
  return first;
}

}  // namespace

void tie_rotary(Ties& ties) {
  const ValueId x = ties.input(0);
  const std::size_t rank = ties.shape(x).size();
  for (std::size_t d = 0; d < rank; ++d) {
    const Tags& tags = ties.tags(x, d);
    if (rank == 3 && d == 2 && !tags.empty()) {
      unite_heads(ties, tags, static_cast<std::size_t>(ties.node().attributes.get_int("num_heads", 1)));
    } else if (rank == 4 && d == 3) {
      ties.block(tags, "turns in pairs at " + ties.place());
    }
    ties.set(ties.output(), d, tags);
  }
}

void tie_attention(Ties& ties) {
  const ValueId q = ties.input(0), k = ties.input(1), v = ties.input(2);
  for (std::size_t i = 4; i < 6; ++i) {
    if (!ties.has_input(i)) continue;
    ties.block_inputs("joins a cache at " + ties.place());
    return;
  }
  if (ties.has_input(3)) {
    const Shape& mask = ties.shape(ties.input(3));
    if (mask.size() >= 3 && mask[mask.size() - 3] > 1) {
      ties.block_inputs("has a mask for each head at " + ties.place());
      return;
    }
  }
  const bool is_flat = ties.shape(q).size() == 3;
  const auto& attributes = ties.node().attributes;
  const auto q_heads = static_cast<std::size_t>(is_flat ? attributes.get_int("q_num_heads", 1) : ties.shape(q)[1]);
  const auto kv_heads = static_cast<std::size_t>(is_flat ? attributes.get_int("kv_num_heads", 1) : ties.shape(k)[1]);
  const std::size_t axis = is_flat ? 2 : 1;
  if (ties.tags(q, axis).empty() || ties.tags(k, axis).empty() || ties.tags(v, axis).empty()) {
    for (ValueId id : {q, k, v}) ties.block(ties.tags(id, axis), "meets heads that stay at " + ties.place());
  } else {
    if (is_flat) {
      unite_heads(ties, ties.tags(q, 2), q_heads);
      unite_heads(ties, ties.tags(k, 2), kv_heads);
      unite_heads(ties, ties.tags(v, 2), kv_heads);
    }
    const Tags qs = one_a_head(ties.tags(q, axis), q_heads);
    const Tags ks = one_a_head(ties.tags(k, axis), kv_heads), vs = one_a_head(ties.tags(v, axis), kv_heads);
    ties.unite(ks, vs);
    for (std::size_t h = 0; h < q_heads; ++h) ties.unite(ks[h * kv_heads / q_heads], qs[h]);
    if (is_flat) {
      const std::size_t size = ties.tags(v, 2).size() / kv_heads;
      Tags out;
      for (std::size_t h = 0; h < q_heads; ++h) out.insert(out.end(), size, qs[h]);
      ties.set(ties.output(), 2, std::move(out));
    } else {
      ties.set(ties.output(), 1, qs);
    }
    for (std::size_t o = 1; o < std::min<std::size_t>(ties.node().outputs.size(), 3); ++o)
      ties.set(ties.output(o), 1, ks);
  }
  if (!is_flat) {  // sizes of heads: the scale follows from that of queries and keys
    for (ValueId id : {q, k}) ties.block(ties.tags(id, 3), "is the size of a head at " + ties.place());
    ties.set(ties.output(), 3, ties.tags(v, 3));
  }
  ties.set(ties.output(), 0, ties.join({{q, 0}, {k, 0}, {v, 0}}));
}

void refit_attention(Refit& refit) {
  const Node& before = refit.before();
  const ValueId q = before.inputs[0], k = before.inputs[1];
  if (refit.ties().shape(q).size() != 3) return;
  const auto heads = [&](const char* name, ValueId id) {
    const std::int64_t count = before.attributes.get_int(name, 1);
    const std::int64_t size = refit.size(id, 2) / count;
    refit.node().attributes.set(name, refit.kept(id, 2) / size);
  };
  if (!refit.is_cut(q, 2)) return;
  heads("q_num_heads", q);
  heads("kv_num_heads", k);
}

void refit_rotary(Refit& refit) {
  const Node& before = refit.before();
  const ValueId x = before.inputs[0];
  if (refit.ties().shape(x).size() != 3 || !refit.is_cut(x, 2)) return;
  const std::int64_t heads = before.attributes.get_int("num_heads", 1);
  refit.node().attributes.set("num_heads", refit.kept(x, 2) / (refit.size(x, 2) / heads));
}

}  // namespace ctk::graph
