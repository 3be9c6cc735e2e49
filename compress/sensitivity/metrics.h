// Sensitivity metrics: what a layer under a scheme is said to cost. The visible table, and what each row is given.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/session.h"
#include "graph/layer.h"

namespace ctk::pipeline {

// One layer of the float graph under one scheme other than fp32, which it can take.
struct Candidate {
  graph::Layer layer;
  std::string address;
  QuantScheme scheme;
};

// Scores that need not be computed again: filled while a metric works, kept across a stop.
class ScoreStore;

struct ScoreTask {
  Session& session;
  const std::vector<Candidate>& candidates;  // of one layer together, in graph order
  ScoreStore& store;
};

struct SensitivityMetric {
  std::string_view name;
  std::string_view formula;  // of the loss: smaller is better, and losses of layers add up
  // One score a candidate, in order. Errors: input, interrupted.
  Result<std::vector<Score>> (*score)(const ScoreTask& task);
  bool divides = false;  // the candidates over ranks itself; else each rank is given layers of its own
};

std::span<const SensitivityMetric> sensitivity_metrics();
Result<const SensitivityMetric*> find_sensitivity_metric(std::string_view name);  // errors: config, lists the known

Result<std::vector<Score>> score_kl(const ScoreTask& task);
Result<std::vector<Score>> score_fisher(const ScoreTask& task);
Result<std::vector<Score>> score_hessian_mse(const ScoreTask& task);
Result<std::vector<Score>> score_sqnr(const ScoreTask& task);
Result<std::vector<Score>> score_cosine(const ScoreTask& task);
Result<std::vector<Score>> score_weights(const ScoreTask& task);

// KL of the outputs to those of the float network over the score split, with these layers alone coded by rounding.
// `reference` receives the float network's outputs at the first call. Errors: those of coding and running.
Result<data::MetricValue> kl_of(const Session& session, const quantization::SchemeMap& schemes,
                                std::optional<OutputCache>& reference);

// Mean of a sample's figures and its standard error.
class MeanOfSamples {
 public:
  void add(double value);
  double mean() const;
  double standard_error() const;  // sqrt(variance / count)

 private:
  std::size_t count_ = 0;
  double mean_ = 0, deviations_ = 0;  // Welford's
};

}  // namespace ctk::pipeline
