// quantize.low_rank: what coding took from each product is given back in part, by two thin products beside it.
#pragma once

#include <vector>

#include "compress/session.h"

namespace ctk::pipeline {

// `coded`: the session's float network with codes, whose layers keep their addresses. Second moments are those of the
// float network on the calibrate split. Returns a row for each layer that has codes: error before and after, or why it
// has no correction. Errors: input (those of running), interrupted.
Result<std::vector<exporter::TransformRow>> correct_layers(const Session& session, graph::Graph& coded);

}  // namespace ctk::pipeline
