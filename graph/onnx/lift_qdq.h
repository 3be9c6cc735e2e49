// Q/DQ nodes of a read model -> quantization notes, the form the executors run in integers.
#pragma once

#include "graph/graph.h"

namespace ctk::graph::onnx {

// Lifts, where the notes can say exactly the same:
//   DequantizeLinear of constant symmetric 8 or 4 bit codes that a layer reads as weight -> Value::quantized
//   DequantizeLinear of constant int32 codes                                             -> a float constant
//   QuantizeLinear + DequantizeLinear, per tensor, uint8 or int8 (moved by 128)          -> Value::activation_quant
// and gives the layers their `scheme`. Whatever else there is (asymmetric or blocked weights, a code of -128, other
// activation types, a value that is read both before and after rounding) stays as nodes. Returns the number of patterns
// lifted. Errors: input (a scale or zero point that contradicts its own tensor).
Result<int> lift_quantization(Graph& graph);

}  // namespace ctk::graph::onnx
