// AveragePool: the mean under each window, summed in double, row-major.
// In:  X [N, C, spatial...] f32.   Out: Y [N, C, spatial...].
// The divisor counts elements inside the input; with count_include_pad also those inside the declared padding, but not
// what ceil_mode lets a window hang over beyond it.
#include "graph/ops/pool.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  CTK_TRY(const Window window, pool_window_of(node, inputs[0].shape));
  const auto dims = as_volume(window);
  const bool counts_pads = node.attributes.get_int("count_include_pad", 0) != 0;
  for_each_pool_position(inputs[0].shape, dims, inputs[0].as<float>(), outputs[0].as<float>(),
                         [&dims, counts_pads](const float* image, const auto& taps, const auto& at) {
                           double sum = 0.0, count = 1.0;
                           for_each_tap(dims, taps, at, image, [&sum](float x) { sum += x; });
                           for (std::size_t d = 0; d < 3; ++d) {
                             const IndexRange counted =
                                 counts_pads ? taps_inside(dims[d], at[d], dims[d].pad_begin, dims[d].pad_end)
                                             : taps[d];
                             count *= static_cast<double>(counted.end - counted.begin);
                           }
                           return static_cast<float>(sum / count);
                         });
  return {};
}

}  // namespace

const OpRules& rules_AveragePool() {
  static const OpRules rules = {OpKind::pool, 1, 1, infer_pool, evaluate};
  return rules;
}

}  // namespace ctk::graph
