// What `run` and `check` do alike before any work: open the data, and refuse what a later stage would refuse.
#pragma once

#include "compress/session.h"

namespace ctk::pipeline {

// `output` and the model's files against each other and the file system, then the model itself.
// Errors: config (see output_folder.h), input (see load_model).
Result<LoadedModel> load_for(const PipelineConfig& config, const std::string& output, bool force);

Session make_session(const PipelineConfig& config, const RunOptions& options, const std::string& output,
                     LoadedModel model);

// Fills session.splits and the warnings. Errors: input (operators that a stage would have to run and we cannot, data,
// a split that a stage needs and that stayed empty), config (patterns, no layer to quantize), budget_infeasible.
Status prepare(Session& session);

}  // namespace ctk::pipeline
