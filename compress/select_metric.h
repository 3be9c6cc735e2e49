// The metric that gates and finalists are compared by: on the select split, which nothing is fitted to or reported on.
#pragma once

#include <string>

#include "compress/evaluate.h"
#include "compress/session.h"
#include "data/metric.h"

namespace ctk::pipeline {

// Whether the select split has what the metric needs: labels, and of pairs both samples, which only a split that is
// given is sure of, since samples that are drawn come one by one.
bool fits_select(const Session& session, const data::MetricInfo& metric);
// What is compared where nobody names a metric: top1 where samples have classes, else agreement.
std::string usual_metric(const Session& session);

class SelectMetric {
 public:
  // data.select.metric, else evaluate's, else usual_metric(); where that does not fit the split agreement with the
  // float network, or for pairs the cosine to it. Runs the float network once where the metric compares with it.
  // Errors: input (the pipeline has no select split; those of running).
  static Result<SelectMetric> open(const Session& session);

  const std::string& name() const { return name_; }
  bool higher_is_better() const { return higher_is_better_; }
  // Errors: input (those of running), interrupted.
  Result<double> of(const graph::Graph& graph) const;

 private:
  SelectMetric(const data::Split& split, const std::string& folder) : split_(&split), reference_(folder) {}

  const data::Split* split_;
  std::string name_;
  bool higher_is_better_ = true, compares_ = false;
  OutputCache reference_;
};

}  // namespace ctk::pipeline
