#include "compress/prune/macs.h"

namespace ctk::pruning {

std::int64_t MacsCount::of(const graph::Coupling::Units& removed) const {
  const std::vector<bool> mask = coupling_.mask_of(removed);
  const graph::Graph& graph = coupling_.graph();
  std::int64_t sum = 0;
  for (const graph::Layer& layer : layers_) {
    const Shape weight = coupling_.shape_without(layer.weight, mask);
    const auto weights = static_cast<std::int64_t>(elements(weight));
    const bool is_transposed = graph.node(layer.node).op == graph::Op::ConvTranspose;
    // Each output element meets the weights of its channel; of a transposed convolution, each input element those of
    // its own.
    const graph::ValueId at = is_transposed ? layer.input : graph.node(layer.node).outputs[0];
    const auto places = static_cast<std::int64_t>(elements(coupling_.shape_without(at, mask)));
    const std::int64_t channels = weight[is_transposed ? 0 : static_cast<std::size_t>(layer.channel_axis)];
    if (channels > 0) sum += places * (weights / channels);
  }
  return sum;
}

}  // namespace ctk::pruning
