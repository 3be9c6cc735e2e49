// Writes graphs as ONNX files. The graph's nodes have opset 24 form; they are written in the form of the opset asked
// for.
#pragma once

#include <string>

#include "graph/graph.h"

namespace ctk::graph::onnx {

struct WriteOptions {
  int opset = 0;                   // of the default domain, 9 to 24; 0 keeps graph.opset
  std::string external_data = {};  // write_model: file beside the model for tensors of 1 kB and more; empty: all inside
};

// The whole file. Names, order of inputs and outputs, metadata, opsets of other domains and unknown nodes stay as they
// are; the same graph gives the same bytes. Quantization notes have no ONNX form: export/onnx_qdq turns them into
// nodes. Errors: input (a node and its operator that the opset has no form for, with both opsets; an unknown operator
// when the opset changes; more than 2 GB), config (opset out of range), internal (a graph with notes, or that fails
// verify()).
Result<std::string> write_model_bytes(const Graph& graph, const WriteOptions& options);

// Writes `path` whole or not at all; likewise the data file, whose name must stay inside the model's folder. Files that
// the graph's constants are mapped from may be overwritten: the mapping keeps the old bytes. Errors: also input
// (writing).
Status write_model(const Graph& graph, const std::string& path, const WriteOptions& options);

}  // namespace ctk::graph::onnx
