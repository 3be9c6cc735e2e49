#include "graph/passes/passes.h"

#include <array>

#include "graph/passes/rewrite.h"

namespace ctk::graph {

std::span<const Pass> passes() {
  // The order matters: constants first, so that weights are seen as weights; notes on fusion last, when the nodes they
  // speak of are the ones that stay.
  static constexpr std::array kPasses{
      Pass{"fold_constants", "computes nodes whose inputs are all known", fold_constants},
      Pass{"eliminate_identity", "removes nodes that hand their input through unchanged", eliminate_identity},
      Pass{"fold_batchnorm", "scales a layer's weights by the batch normalization behind it", fold_batchnorm},
      Pass{"fold_pad", "moves zero padding into the convolution or pool behind it", fold_pad},
      Pass{"absorb_activations", "notes which layer computes the Relu or Clip behind it", absorb_activations},
      Pass{"absorb_residuals", "notes which convolution adds the residual behind it", absorb_residuals},
      Pass{"eliminate_dead", "removes nodes and constants nobody reads", eliminate_dead},
  };
  return kPasses;
}

Result<std::vector<PassOutcome>> run_passes(Graph& graph) {
  std::vector<PassOutcome> outcomes;
  for (const Pass& pass : passes()) {
    auto changes = pass.run(graph);
    if (!changes) return std::move(changes.error()).with_context("pass " + std::string(pass.name));
    outcomes.push_back({std::string(pass.name), *changes});
  }
  auto status = verify(graph);
  if (!status) return std::move(status.error()).with_context("after the passes");
  return outcomes;
}

}  // namespace ctk::graph
