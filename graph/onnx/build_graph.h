// ModelProto -> Graph. Internal to graph/onnx.
#pragma once

#include <onnx.pb.h>

#include "graph/graph.h"
#include "graph/onnx/external_data.h"
#include "graph/onnx/read.h"

namespace ctk::graph::onnx {

// Checks every claim of the model, builds the graph, normalizes its nodes, sorts and verifies. The model is emptied on
// the way so that weights are held once. Errors: input.
Result<Graph> build_graph(::onnx::ModelProto& model, ExternalData& external, const ReadOptions& options);

}  // namespace ctk::graph::onnx
