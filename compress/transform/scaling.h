// What the methods that scale inputs share: groups, samples, folds; each method says which factors.
#pragma once

#include <functional>

#include "compress/transform/coded_error.h"
#include "compress/transform/fold.h"
#include "compress/transform/methods.h"

namespace ctk::transform {

struct Factors {
  std::vector<float> values;  // [features]; empty: none are better than 1
  double strength = 0;
  double error_before = 0, error_after = 0;  // relative
};
// layers: the wanted ones of the group. class_of: features of one class must share a factor.
using ChooseFactors = std::function<Result<Factors>(const InputGroup& group, std::span<const CodedLayer> layers,
                                                    InputSamples& samples, std::span<const std::uint32_t> class_of)>;

struct ScalingOptions {
  std::string method;
  SampleOptions samples;
  std::function<bool(const QuantScheme&)> takes;  // layers of other schemes are listed, not scaled
  std::string why_not;                            // said of those
};

// Scales the inputs of every group of layers that can be scaled. A Mul of its own is put in where nothing takes the
// factors in, if the request allows it and the error falls by kLeastGain.
inline constexpr double kLeastGain = 0.05;
Result<Transformed> scale_groups(const Request& request, const ScalingOptions& options, const ChooseFactors& choose);

}  // namespace ctk::transform
