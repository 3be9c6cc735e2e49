// Runs a pipeline: stages in order, each cached under the fingerprint of what it depends on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/config.h"
#include "compress/progress.h"
#include "core/ranks.h"
#include "core/result.h"
#include "export/report.h"

namespace ctk::pipeline {

struct RunOptions {
  std::string config_path;             // for the report
  std::string command;                 // as typed, for the report
  std::string output_override;         // empty = as the file says
  std::vector<std::string> overrides;  // --set, for the report
  int threads = 0;                     // 0 = as the file says
  bool force = false;                  // replace a result that is already there
  bool resume = true;                  // use cached stages
  ProgressSink* progress = nullptr;    // not owned; may be null
  Ranks* ranks = nullptr;              // not owned; null: this process alone
};

// With ranks every one of them makes this call with the same configuration; rank 0 alone writes into the output folder,
// and the report of the others is of no use. The first to fail fails all.
// Errors: config, input, budget_infeasible, gate_refused, interrupted (the same call goes on where it stopped).
Result<exporter::Report> run_pipeline(const PipelineConfig& config, const RunOptions& options);

// What can be known without work.
struct SchemeCheck {
  std::string scheme;
  bool is_feasible = false;
  std::string reason;       // why not
  std::uint64_t bytes = 0;  // of the weights under it
};
struct LayerCheck {
  std::string name, op, shape;  // address; "Conv"; of the weight "[16,16,3,3]"
  std::int64_t macs = 0;
  std::vector<SchemeCheck> schemes;  // those the pipeline may choose from
};
struct CarriedOp {
  std::string name, op, reason;  // a node we keep but cannot run
};
struct CheckReport {
  std::string model_path, model_format;
  std::int64_t parameters = 0, macs = 0;
  std::vector<std::string> inputs, outputs;  // "image f32 [N,1,8,8]"
  std::vector<LayerCheck> layers;
  std::vector<CarriedOp> carried;
  std::uint64_t float_bytes = 0, smallest_bytes = 0, largest_bytes = 0;  // of the written model
  std::vector<exporter::BudgetRow> budget;                               // limits against what is reachable
  std::vector<exporter::WarningRow> warnings;
};
// Everything that can be found wrong without work: output folder, paths, shapes, operators, data and splits, patterns,
// schemes, reachable sizes. What a run would refuse before its first stage is refused here in the same words.
// `force` as in RunOptions. Errors: config, input, budget_infeasible.
Result<CheckReport> check_pipeline(const PipelineConfig& config, bool force = false);

}  // namespace ctk::pipeline
