// Optimizers, schedules, clipping: how parameters move.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "train/torch/torch_graph.h"
#include "train/trainer.h"

namespace ctk::train {

// The learning rate of update `at` of `total`, both from the options' schedule.
double learning_rate_at(const FitOptions& options, std::int64_t at, std::int64_t total);

// SGD with Nesterov momentum: g += decay p; v = m v + g (first v = g); p -= rate (g + m v). Adam: means of g and g^2
// with 0.9 and 0.999, corrected for their start, epsilon 1e-8; adamw takes decay * rate * p off instead of adding it
// to g.
class ParameterStep {
 public:
  ParameterStep(std::vector<Parameter>& parameters, const FitOptions& options);
  // Moves every parameter by its gradient, clipped first, and clears the gradients.
  void step(double learning_rate);
  // What it remembers, for saved states: one or two tensors a parameter, and how many steps were done.
  std::vector<at::Tensor> memory() const;
  std::int64_t steps = 0;

 private:
  void clip();

  std::vector<Parameter>& parameters_;
  const FitOptions& options_;
  std::vector<at::Tensor> first_, second_;
};

}  // namespace ctk::train
