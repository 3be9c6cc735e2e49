// Plain ONNX: coded weights as the floats they stand for, no quantization nodes.
#pragma once

#include <string>

#include "graph/graph.h"

namespace ctk::exporter {

Result<std::string> onnx_float_of(const graph::Graph& graph);

}  // namespace ctk::exporter
