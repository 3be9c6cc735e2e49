// The same share of channels cut everywhere, without data: how a smaller student is made.
#pragma once

#include "compress/session.h"

namespace ctk::pipeline {

// `graph` without `ratio` of the channels of each group, the least by l1. Errors: config (nothing can be cut).
Result<graph::Graph> cut_evenly(const Session& session, const graph::Graph& graph, double ratio);

}  // namespace ctk::pipeline
