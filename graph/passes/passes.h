// Rewrites that leave the float function unchanged, in one visible order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace ctk::graph {

struct Pass {
  std::string_view name;             // verb_noun
  std::string_view what;             // one line for `compress list passes`
  Result<int> (*run)(Graph& graph);  // number of changes made
};

// fold_constants, eliminate_identity, fold_batchnorm, fold_pad, absorb_activations, absorb_residuals, eliminate_dead.
std::span<const Pass> passes();

struct PassOutcome {
  std::string name;
  int changes = 0;
};
// Runs the table in order. Errors: input/internal with the pass's name in front.
Result<std::vector<PassOutcome>> run_passes(Graph& graph);

}  // namespace ctk::graph
