#include "export/formats.h"

#include <array>

#include "export/bundle.h"
#include "export/gguf.h"
#include "export/onnx_float.h"
#include "export/onnx_qdq.h"

namespace ctk::exporter {
namespace {

Result<std::string> serialize_bundle(const graph::Graph& graph, const std::string&) {
  return bundle_of(graph);
}
Result<std::string> serialize_onnx_qdq(const graph::Graph& graph, const std::string&) {
  return onnx_qdq_of(graph);
}
Result<std::string> serialize_onnx_float(const graph::Graph& graph, const std::string&) {
  return onnx_float_of(graph);
}

constexpr std::array kFormats{
    Format{"bundle", "model.ctkb", "our memory-mapped file: graph, codes, scales, hashes", serialize_bundle},
    Format{"onnx_qdq", "model_qdq.onnx", "ONNX with QuantizeLinear/DequantizeLinear pairs", serialize_onnx_qdq},
    Format{"onnx", "model.onnx", "ONNX in float, codes dequantized", serialize_onnx_float},
    Format{"gguf", "model.gguf", "llama.cpp's format: codes as they are, with the model's tokenizer", gguf_of},
};

}  // namespace

std::span<const Format> formats() {
  return kFormats;
}

Result<const Format*> find_format(std::string_view name) {
  std::string known;
  for (const Format& row : kFormats) {
    if (row.name == name) return &row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return config_error("unknown export format \"" + std::string(name) + "\". Known: " + known + ", report");
}

}  // namespace ctk::exporter
