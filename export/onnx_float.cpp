#include "export/onnx_float.h"

#include "graph/floats.h"
#include "graph/onnx/write.h"

namespace ctk::exporter {

Result<std::string> onnx_float_of(const graph::Graph& graph) {
  graph::Graph plain = graph.clone();
  graph::widen_constants(plain);
  for (std::size_t i = 0; i < plain.value_capacity(); ++i) {
    graph::Value& value = plain.value(graph::ValueId{static_cast<std::uint32_t>(i)});
    if (value.is_removed) continue;
    value.activation_quant.reset();
    if (value.quantized == nullptr) continue;
    value.constant = dequantize(*value.quantized);
    value.quantized.reset();
  }
  return graph::onnx::write_model_bytes(plain, {});
}

}  // namespace ctk::exporter
