// ONNX with Q/DQ pairs: the same quantized numbers for any runtime that reads ONNX.
#pragma once

#include <string>

#include "graph/graph.h"

namespace ctk::exporter {

// The graph with its notes turned into nodes: every noted value gets QuantizeLinear and DequantizeLinear behind its
// producer, every coded weight a DequantizeLinear, every bias of an integer layer int32 codes at scale input x weight.
// Inputs and outputs keep name, order and dtype. Errors: input (a weight form Q/DQ cannot express; names the layer).
Result<graph::Graph> to_qdq(const graph::Graph& graph);

// The written file: opset max(source, 13), or 21 with 4-bit codes; the model is raised as a whole.
Result<std::string> onnx_qdq_of(const graph::Graph& graph);

}  // namespace ctk::exporter
