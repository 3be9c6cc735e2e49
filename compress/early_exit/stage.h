// The stage early_exit, and what the export writes of it.
#pragma once

#include <string>
#include <vector>

#include "compress/session.h"

namespace ctk::pipeline {

// Before any work. Errors: config (no trainer, no place for a head, a metric that is not of single samples), input (an
// output other than [batch, classes]; data that is missing).
Status prepare_early_exit(const Session& session);

std::int64_t early_exit_work(const Session& session);  // steps
// Heads trained on the network's own outputs, thresholds under which the select split keeps max_drop, and the graph
// that chooses. Exits at which nobody leaves are left out. Errors: gate_refused (nobody can leave early), those of
// training and running.
Status run_early_exit(Session& session, bool& cached);

// Where the final graph has exits: early_exit/exits.json, and for bundle, onnx and onnx_qdq one file a stage. Figures
// are of the final graph, coded or not. Errors: those of running and writing.
Status export_early_exit(Session& session);
// Files of it that a run may write.
void add_early_exit_names(const std::vector<std::string>& formats, std::vector<std::string>& names);

}  // namespace ctk::pipeline
