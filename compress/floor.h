// budget.metric_drop on the select split: how far a whole network is from the floor, before the test split says so
// once.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "compress/evaluate.h"
#include "compress/session.h"

namespace ctk::pipeline {

class Floor {
 public:
  struct Verdict {
    double metric = 0;
    double kl = 0;    // nats, to the float network
    double drop = 0;  // in the unit of the limit: points, or a ratio
    bool is_within = false;
    bool is_clearly_broken = false;  // by more than two standard errors of the metric
    std::string text;                // "top1 0.8733 -> 0.8705: drop 0.28 pt, limit 0.5 pt"
  };

  // The metric is that of data.evaluate. Runs the float network once. None where no drop is limited or there is no
  // select split. Errors: those of running.
  static Result<std::optional<Floor>> open(const Session& session);

  // Runs the network over the split; counted. Errors: those of running, config (a limit that does not fit the metric).
  Result<Verdict> hold(const graph::Graph& graph);

  std::int64_t evaluations() const { return evaluations_; }
  std::size_t samples() const { return split_.count(); }
  const std::string& metric() const { return metric_; }
  const MetricDrop& limit() const { return limit_; }

 private:
  Floor(data::Split split, const std::string& folder) : split_(std::move(split)), reference_(folder) {}

  data::Split split_;
  OutputCache reference_;
  MetricDrop limit_;
  std::string metric_;
  double baseline_ = 0;
  std::int64_t evaluations_ = 0;
};

}  // namespace ctk::pipeline
