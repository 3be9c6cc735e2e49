#include "export/formats.h"

#include <array>

#include "export/bundle.h"
#include "export/gguf.h"
#include "export/onnx_float.h"
#include "export/onnx_nbits.h"
#include "export/onnx_qdq.h"
#include "export/safetensors.h"

namespace ctk::exporter {
namespace {

constexpr std::string_view kBundle = "model.ctkb", kQdq = "model_qdq.onnx", kOnnx = "model.onnx",
                           kNbits = "model_nbits.onnx", kGguf = "model.gguf";

Result<Written> one_file(std::string_view name, Result<std::string> bytes) {
  if (!bytes) return std::move(bytes).error();
  Written written;
  written.files.push_back({std::string(name), std::move(*bytes)});
  return written;
}

Result<Written> write_bundle_file(const graph::Graph& graph, const std::string&) {
  return one_file(kBundle, bundle_of(graph));
}
Result<Written> write_qdq(const graph::Graph& graph, const std::string&) {
  return one_file(kQdq, onnx_qdq_of(graph));
}
Result<Written> write_float(const graph::Graph& graph, const std::string&) {
  return one_file(kOnnx, onnx_float_of(graph));
}
Result<Written> write_nbits(const graph::Graph& graph, const std::string&) {
  return one_file(kNbits, onnx_nbits_of(graph));
}
Result<Written> write_gguf_file(const graph::Graph& graph, const std::string& model) {
  CTK_TRY(Written written, one_file(kGguf, gguf_of(graph, model)));
  written.notes = gguf_notes(graph);
  return written;
}

constexpr std::array kFormats{
    Format{"bundle", kBundle, "our memory-mapped file: graph, codes, scales, hashes", write_bundle_file},
    Format{"onnx_qdq", kQdq, "ONNX with QuantizeLinear/DequantizeLinear pairs", write_qdq},
    Format{"onnx_nbits", kNbits, "ONNX for language models: MatMulNBits, KV cache", write_nbits},
    Format{"onnx", kOnnx, "ONNX in float, codes dequantized", write_float},
    Format{"gguf", kGguf, "llama.cpp's format: codes as they are, with the model's tokenizer", write_gguf_file},
    Format{"safetensors", kSafetensorsFile, "compressed-tensors checkpoint folder for transformers and vLLM",
           write_safetensors, kSafetensorsOthers},
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
