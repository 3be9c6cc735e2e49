#include "train/torch/optimizer.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <numbers>

namespace ctk::train {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kAdamEpsilon = 1e-8;

}  // namespace

double learning_rate_at(const FitOptions& options, std::int64_t at, std::int64_t total) {
  const double warm = std::floor(options.warmup * static_cast<double>(total));
  const double place = static_cast<double>(at);
  if (place < warm) return options.learning_rate * (place + 1) / warm;
  const double done = (place - warm) / std::max(1.0, static_cast<double>(total) - warm);
  switch (options.schedule) {
    case Schedule::cosine:
      return options.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
    case Schedule::step:
      return options.learning_rate * (done < 0.5 ? 1.0 : done < 0.75 ? 0.1 : 0.01);
    case Schedule::constant:
      break;
  }
  return options.learning_rate;
}

ParameterStep::ParameterStep(std::vector<Parameter>& parameters, const FitOptions& options)
    : parameters_(parameters), options_(options) {
  for (const Parameter& parameter : parameters_) {
    // What is frozen has nothing to remember.
    const at::Tensor zeros = parameter.value.requires_grad() ? at::zeros_like(parameter.value) : at::zeros({0});
    first_.push_back(zeros);
    if (options_.optimizer != Optimizer::sgd) second_.push_back(zeros.clone());
  }
}

std::vector<at::Tensor> ParameterStep::memory() const {
  std::vector<at::Tensor> all = first_;
  all.insert(all.end(), second_.begin(), second_.end());
  return all;
}

void ParameterStep::clip() {
  double squares = 0;
  for (const Parameter& parameter : parameters_) {
    const at::Tensor& g = parameter.value.grad();
    if (g.defined()) squares += g.square().sum(at::kDouble).item().toDouble();
  }
  const double norm = std::sqrt(squares);
  if (!(norm > options_.clip_norm)) return;
  for (Parameter& parameter : parameters_) {
    if (parameter.value.grad().defined()) parameter.value.mutable_grad().mul_(options_.clip_norm / norm);
  }
}

void ParameterStep::step(double learning_rate) {
  const at::NoGradGuard no_gradient;
  if (options_.clip_norm > 0) clip();
  ++steps;
  const double correct1 = 1 - std::pow(kBeta1, static_cast<double>(steps));
  const double correct2 = 1 - std::pow(kBeta2, static_cast<double>(steps));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor p = parameters_[i].value;
    at::Tensor g = p.grad();
    if (!g.defined()) continue;
    const double decay = parameters_[i].decays ? options_.weight_decay : 0;
    if (decay != 0 && options_.optimizer != Optimizer::adamw) g.add_(p, decay);
    if (options_.optimizer == Optimizer::sgd) {
      first_[i].mul_(options_.momentum).add_(g);
      p.add_(g.add_(first_[i], options_.momentum), -learning_rate);
    } else {
      if (decay != 0 && options_.optimizer == Optimizer::adamw) p.mul_(1 - learning_rate * decay);
      first_[i].mul_(kBeta1).add_(g, 1 - kBeta1);
      second_[i].mul_(kBeta2).addcmul_(g, g, 1 - kBeta2);
      const at::Tensor root = second_[i].sqrt().div_(std::sqrt(correct2)).add_(kAdamEpsilon);
      p.addcdiv_(first_[i], root, -learning_rate / correct1);
    }
    parameters_[i].value.mutable_grad() = at::Tensor();
  }
}

}  // namespace ctk::train
