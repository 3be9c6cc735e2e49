// Operators that compute each output element from the elements at its place, and those that keep the first input's
// channels: activations, arithmetic with broadcasting, pools, normalizations.
#include "graph/coupling/rules.h"

namespace ctk::graph {

void tie_first(Ties& ties) {
  const ValueId x = ties.input(0);
  for (std::size_t o = 0; o < ties.node().outputs.size(); ++o) {
    for (std::size_t d = 0; d < ties.shape(x).size(); ++d) ties.set(ties.output(o), d, ties.tags(x, d));
  }
}

void tie_elementwise(Ties& ties) {
  const std::size_t rank = ties.shape(ties.output()).size();
  for (std::size_t d = 0; d < rank; ++d) {
    std::vector<DimOf> operands;
    for (ValueId id : ties.node().inputs) {
      if (!id.is_valid()) continue;
      const std::size_t missing = rank - ties.shape(id).size();
      if (d >= missing) operands.push_back({id, d - missing, AxisRole::accompanies});
    }
    ties.set(ties.output(), d, ties.join(operands));
  }
}

void tie_pool(Ties& ties) {
  const ValueId x = ties.input(0);
  for (std::size_t d = 0; d < ties.shape(x).size(); ++d) {
    if (d < 2)
      ties.set(ties.output(), d, ties.tags(x, d));
    else
      ties.block(ties.tags(x, d), "is pooled over at " + ties.place());
  }
}

void tie_batch_normalization(Ties& ties) {
  const ValueId x = ties.input(0);
  for (std::size_t d = 0; d < ties.shape(x).size(); ++d) {
    if (d != 1) {
      ties.set(ties.output(), d, ties.tags(x, d));
      continue;
    }
    std::vector<DimOf> operands{{x, 1, AxisRole::accompanies}};
    for (std::size_t i = 1; i < 5; ++i) operands.push_back({ties.input(i), 0, AxisRole::accompanies});
    ties.set(ties.output(), 1, ties.join(operands));
  }
}

// Channels may go, but the rest is then normalized by statistics of fewer.
void tie_layer_normalization(Ties& ties) {
  const ValueId x = ties.input(0);
  const std::size_t rank = ties.shape(x).size();
  const std::size_t axis = Ties::axis_of(ties.node().attributes.get_int("axis", -1), rank);
  for (std::size_t d = 0; d < rank; ++d) {
    std::vector<DimOf> operands{{x, d, AxisRole::accompanies}};
    for (std::size_t i = 1; i < ties.node().inputs.size(); ++i) {
      const ValueId id = ties.input(i);
      if (!id.is_valid()) continue;
      const std::size_t missing = rank - ties.shape(id).size();
      if (d >= missing) operands.push_back({id, d - missing, AxisRole::accompanies});
    }
    const Tags tags = ties.join(operands);
    if (d >= axis) ties.note_statistics(tags, ties.place());
    for (std::size_t o = 0; o < ties.node().outputs.size(); ++o) {
      if (o == 0 || d < axis) ties.set(ties.output(o), d, tags);
    }
  }
}

void tie_softmax(Ties& ties) {
  const ValueId x = ties.input(0);
  const std::size_t rank = ties.shape(x).size();
  const std::size_t axis = Ties::axis_of(ties.node().attributes.get_int("axis", -1), rank);
  for (std::size_t d = 0; d < rank; ++d) {
    if (d == axis) ties.block(ties.tags(x, d), "is normalized over at " + ties.place());
    ties.set(ties.output(), d, ties.tags(x, d));
  }
}

}  // namespace ctk::graph
