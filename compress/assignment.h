// A file of schemes by layer, {"layer": "w8a8_c"}: what a search leaves as search/assignment.json, what people edit,
// and what stages.quantize.assignment takes instead of one scheme for all.
#pragma once

#include <string>

#include "compress/session.h"

namespace ctk::pipeline {

// Errors: input (names the file, and the layer whose scheme is none).
Result<std::map<std::string, QuantScheme>> read_schemes(const std::string& path);

// Every layer that config.quantize->assignment names is one of the graph's and can take its scheme.
// Errors: input (names the file and the layer).
Status check_assignment(const PipelineConfig& config, const graph::Graph& graph);

// session.schemes and reasons from it, for these layers; those it leaves out stay float. Errors: of check_assignment().
Status take_assignment(Session& session, const std::vector<graph::Layer>& layers);

}  // namespace ctk::pipeline
