// Inner values of a student held to those of its teacher.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "train/torch/torch_graph.h"

namespace ctk::train {

// See LossOptions. Values are [batch, channels, places...], [batch, tokens, channels] or [batch, channels].
class FeatureLoss {
 public:
  FeatureLoss(bool is_attention, std::uint64_t seed) : is_attention_(is_attention), seed_(seed) {}

  // Looks at one batch of values: where channels differ in number the pair gets a linear map [teacher's, student's],
  // drawn by the seed, which is trained among `parameters` and never part of a graph.
  // Errors: input (values of another batch or other places; says which pair).
  Status prepare(const std::vector<at::Tensor>& student, const std::vector<at::Tensor>& teacher,
                 std::vector<Parameter>& parameters);
  // A scalar. labels [rows] below 0 take tokens out, where there are as many as tokens; may be undefined.
  at::Tensor loss(const std::vector<at::Tensor>& student, const std::vector<at::Tensor>& teacher,
                  const at::Tensor& labels) const;

 private:
  const bool is_attention_;
  const std::uint64_t seed_;
  std::vector<at::Tensor> maps_;  // [pair]; undefined: as many channels
};

}  // namespace ctk::train
