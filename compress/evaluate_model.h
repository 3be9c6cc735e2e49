// The metric of one model file on one split, with the kernels that run it.
#pragma once

#include <cstdint>
#include <string>

#include "compress/config.h"
#include "compress/progress.h"
#include "core/result.h"

namespace ctk::pipeline {

struct EvalOptions {
  std::string model;               // an .onnx file or a bundle; empty = the pipeline's own model
  std::string split = "evaluate";  // which of data.* to read
  ProgressSink* progress = nullptr;
};

struct EvalResult {
  std::string model, metric;
  bool higher_is_better = true;
  double value = 0, standard_error = 0;
  std::int64_t samples = 0;
  double median_us = 0, p95_us = 0;  // of one sample
  int threads = 0;
};

// Metrics that compare with the float network (agreement, kl) take the pipeline's model as that network.
// Errors: config (the pipeline lacks the split), input.
Result<EvalResult> evaluate_model(const PipelineConfig& config, const EvalOptions& options);

}  // namespace ctk::pipeline
