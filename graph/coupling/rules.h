// How each operator ties channels together, and what of it has to follow when channels are cut: one row an operator.
#pragma once

#include <string_view>

#include "graph/coupling/ties.h"

namespace ctk::graph {

// The graph that is being cut, seen from one node. Questions are about the graph before the cut.
class Refit {
 public:
  // `ties` stands at the node; `is_removed`: by element that stands for its set.
  Refit(const Ties& ties, const std::vector<bool>& is_removed, Graph& graph, NodeId node)
      : ties_(ties), is_removed_(is_removed), graph_(graph), node_(node) {}

  const Ties& ties() const { return ties_; }
  const Node& before() const { return ties_.graph().node(node_); }
  Node& node() { return graph_.node(node_); }
  std::int64_t size(ValueId value, std::size_t dim) const { return ties_.shape(value)[dim]; }
  // Indices of the dimension that stay: all, or those of [0, end).
  std::int64_t kept(ValueId value, std::size_t dim) const { return kept(value, dim, size(value, dim)); }
  std::int64_t kept(ValueId value, std::size_t dim, std::int64_t end) const;
  bool is_cut(ValueId value, std::size_t dim) const { return kept(value, dim) != size(value, dim); }
  // Gives the node's input `index` a constant of its own with these numbers.
  void set_integers(std::size_t index, const std::vector<std::int64_t>& values);

 private:
  const Ties& ties_;
  const std::vector<bool>& is_removed_;
  Graph& graph_;
  NodeId node_;
};

struct CouplingRule {
  Op op;
  // Sets the channels of the outputs from those of the inputs. Called with known shapes only. Null: the channels of
  // the inputs must stay, and those of the outputs cannot be followed.
  void (*tie)(Ties& ties);
  // Null: nothing but constants changes.
  void (*refit)(Refit& refit);
};

// One row for every operator of ops.def, in its order.
const CouplingRule& coupling_rule(Op op);

void tie_elementwise(Ties& ties);  // one input or several, with broadcasting
void tie_first(Ties& ties);        // outputs are like the first input; other inputs are numbers, not channels
void tie_pool(Ties& ties);         // batch and channels pass
void tie_conv(Ties& ties);
void tie_conv_transpose(Ties& ties);
void tie_gemm(Ties& ties);
void tie_mat_mul(Ties& ties);
void tie_batch_normalization(Ties& ties);
void tie_layer_normalization(Ties& ties);
void tie_softmax(Ties& ties);
void tie_reduce(Ties& ties);
void tie_reshape(Ties& ties);
void tie_transpose(Ties& ties);
void tie_squeeze(Ties& ties);
void tie_unsqueeze(Ties& ties);
void tie_expand(Ties& ties);
void tie_resize(Ties& ties);
void tie_concat(Ties& ties);
void tie_split(Ties& ties);
void tie_slice(Ties& ties);
void tie_pad(Ties& ties);
void tie_gather(Ties& ties);
void tie_attention(Ties& ties);
void tie_rotary(Ties& ties);
void tie_sizes(Ties& ties);  // outputs are sizes or made of them: no channels

void refit_conv(Refit& refit);
void refit_target_shape(Refit& refit);  // Reshape, Expand
void refit_resize(Refit& refit);
void refit_split(Refit& refit);
void refit_slice(Refit& refit);
void refit_pad(Refit& refit);
void refit_attention(Refit& refit);
void refit_rotary(Refit& refit);

}  // namespace ctk::graph
