// The metric that gates and finalists are compared by: on the select split, which nothing is fitted to or reported on.
#pragma once

#include <string>

#include "compress/evaluate.h"
#include "compress/session.h"

namespace ctk::pipeline {

class SelectMetric {
 public:
  // data.select.metric, else evaluate's, else top1 where the split has labels; agreement with the float network where
  // that would need labels and there are none. Runs the float network once where the metric compares with it.
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
