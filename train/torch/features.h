// Inner values of a student held to those of its teacher.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "train/torch/torch_graph.h"

namespace ctk::train {

enum class FeatureKind { values, energies, probabilities };

// See LossOptions. Values are [batch, channels, places...], [batch, tokens, channels] or [batch, channels];
// probabilities [batch, heads, queries, keys].
class FeatureLoss {
 public:
  FeatureLoss(FeatureKind kind, std::uint64_t seed) : kind_(kind), seed_(seed) {}

  // Looks at one batch of values: where channels differ in number the pair gets a linear map [teacher's, student's],
  // drawn by the seed, which is trained among `parameters` and never part of a graph.
  // Errors: input (values of another batch or other places, values that are no probabilities; says which pair).
  Status prepare(const std::vector<at::Tensor>& student, const std::vector<at::Tensor>& teacher,
                 std::vector<Parameter>& parameters);
  // A scalar. labels [rows] below 0 take tokens out, where there are as many as tokens; may be undefined.
  at::Tensor loss(const std::vector<at::Tensor>& student, const std::vector<at::Tensor>& teacher,
                  const at::Tensor& labels) const;

 private:
  const FeatureKind kind_;
  const std::uint64_t seed_;
  std::vector<at::Tensor> maps_;  // [pair]; undefined: as many channels
};

}  // namespace ctk::train
