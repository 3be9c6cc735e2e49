#include "compress/sensitivity/metrics.h"

#include <cmath>

namespace ctk::pipeline {
namespace {

const SensitivityMetric kMetrics[] = {
    {"kl", "mean over samples of KL(softmax(float) || softmax(quantized)), one layer at a time, nats", score_kl, true},
    {"fisher",
     "1/2 E[(sum over channels and tokens of g_n dw_n x)^2 + sum over inputs of (g dx)^2] / rows of the output, below "
     "256 "
     "labels the square of each channel by itself; g gradients of -log p(label), label drawn from softmax(float), one "
     "backward pass for all; nats",
     score_fisher},
    {"hessian_mse", "tr(dW H dW'), H = sum of x x' over a sample's rows: squared change of the layer's output",
     score_hessian_mse},
    {"sqnr", "|dW x|^2 / |W x|^2 of a sample: noise to signal of the layer's output, weights only", score_sqnr},
    {"cosine", "1 - cos(W x, (W + dW) x) of a sample: turn of the layer's output, weights only", score_cosine},
    {"weights", "|dW|^2 / |W|^2: no data", score_weights},
};

}  // namespace

std::span<const SensitivityMetric> sensitivity_metrics() {
  return kMetrics;
}

Result<const SensitivityMetric*> find_sensitivity_metric(std::string_view name) {
  std::string known;
  for (const SensitivityMetric& metric : kMetrics) {
    if (metric.name == name) return &metric;
    known += (known.empty() ? "" : ", ") + std::string(metric.name);
  }
  return config_error("stages.sensitivity.metric: expected one of " + known + ", found \"" + std::string(name) +
                      "\". Correct the name.");
}

void MeanOfSamples::add(double value) {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  deviations_ += before * (value - mean_);
}

double MeanOfSamples::mean() const {
  return mean_;
}

double MeanOfSamples::standard_error() const {
  if (count_ < 2) return 0;
  const auto count = static_cast<double>(count_);
  return std::sqrt(deviations_ / count / count);
}

}  // namespace ctk::pipeline
