// What groups of layers are fed, watched in the float network: the reach of each feature, some rows, second moments.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "calibrate/hessian.h"
#include "compress/transform/input_groups.h"
#include "data/splits.h"

namespace ctk::transform {

struct InputSamples {
  std::vector<float> low, high;             // [features] of all samples
  std::vector<float> rows;                  // [count, K] of the layers' reduction, evenly taken
  std::optional<calibrate::Moment> moment;  // [K, K], of all rows
};
struct SampleOptions {
  std::size_t rows = 512;  // kept at most, about
  bool has_moments = false;
};

// One a group, in their order; `groups` all have a layer that patches() can read. One pass over `split`.
// Errors: input (NaN, and those of running), interrupted.
Result<std::vector<InputSamples>> read_samples(const graph::Graph& graph, std::span<const InputGroup> groups,
                                               const data::Split& split, const SampleOptions& options);

// How many groups from the front have second moments that fit into kMomentBytes together; at least one.
inline constexpr std::size_t kMomentBytes = std::size_t{1} << 30;
std::size_t groups_at_once(std::span<const InputGroup> groups);

}  // namespace ctk::transform
