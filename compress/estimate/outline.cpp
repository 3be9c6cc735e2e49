#include "compress/estimate/outline.h"

#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "compress/model.h"
#include "compress/model_tokenizer.h"
#include "core/file.h"
#include "core/quant_tensor.h"
#include "data/text/json_node.h"
#include "graph/gguf/llama.h"
#include "graph/gguf/names.h"
#include "graph/hf/checkpoint.h"
#include "graph/hf/config.h"
#include "graph/hf/read.h"
#include "graph/layer.h"
#include "graph/shapes.h"

namespace ctk::pipeline::estimate {
namespace {

namespace fs = std::filesystem;
using graph::Graph;
using graph::NodeId;
using graph::ValueId;

// Address space that reads as zeros and takes no memory: what stands for weights nobody looks at.
class Hollow {
 public:
  Result<Tensor> operator()(const Shape& shape) {
    const std::size_t bytes = byte_size(DType::f32, elements(shape));
    if (bytes > bytes_) {
      void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (at == MAP_FAILED) {
        return input_error("a weight of shape " + ctk::to_string(shape) + ": expected " + std::to_string(bytes) +
                           " bytes of address space, found less. Correct the sizes in the configuration");
      }
      held_ = std::shared_ptr<const void>(at, [bytes](const void* p) { ::munmap(const_cast<void*>(p), bytes); });
      bytes_ = bytes;
    }
    return Tensor::borrowed(DType::f32, shape, held_.get(), held_);
  }

 private:
  std::shared_ptr<const void> held_;
  std::size_t bytes_ = 0;
};

struct StoredBytes {
  std::map<std::string, double, std::less<>> of;  // by the name of the weight
  double a_number = 0;                            // of weights that stand in no file; 0: as the graph has them
};

Result<Graph> hollow_decoder(const graph::hf::DecoderConfig& config) {
  Hollow hollow;
  return graph::hf::build_decoder(config, [&](const std::string&, const Shape& shape) { return hollow(shape); });
}

// By what config.json says of the type its weights have; 0 where it does not.
Result<double> bytes_a_number(const std::string& path) {
  CTK_TRY(const std::string text, read_text(path));
  CTK_TRY(const data::JsonNode config, data::JsonNode::parse(text, path));
  for (const char* key : {"dtype", "torch_dtype"}) {
    const data::JsonNode type = config.child(key);
    if (!type.is_text()) continue;
    CTK_TRY(const std::string name, type.text());
    if (name == "bfloat16" || name == "float16") return 2.0;
    if (name == "float32") return 4.0;
  }
  return 0.0;
}

// A float checkpoint's decoder by config.json; empty where the weights' files have to be read (codes, encoders).
Result<std::optional<Graph>> decoder_of_folder(const std::string& folder, StoredBytes& stored) {
  const std::string path = (fs::path(folder) / "config.json").string();
  CTK_TRY(const auto config, graph::hf::read_config(path));
  const auto* decoder = std::get_if<graph::hf::DecoderConfig>(&config.model);
  if (decoder == nullptr || config.quantization) return std::optional<Graph>();
  CTK_TRY(Graph graph, hollow_decoder(*decoder));
  if (const auto checkpoint = graph::hf::Checkpoint::open(folder)) {
    for (const std::string& name : checkpoint->names())
      stored.of[name] = static_cast<double>(checkpoint->find(name)->bytes);
  } else {
    CTK_TRY(stored.a_number, bytes_a_number(path));
  }
  return std::optional<Graph>(std::move(graph));
}

Result<Graph> decoder_of_gguf(const std::string& path, StoredBytes& stored) {
  CTK_TRY(const auto file, graph::gguf::File::open(path));
  CTK_TRY(const auto config, graph::gguf::decoder_config(file));
  for (const auto& tensor : file.tensors())
    stored.of[std::string(tensor.name)] = static_cast<double>(tensor.bytes.size());
  return hollow_decoder(config);
}

double bytes_of(const graph::Value& weight, const StoredBytes& stored) {
  if (weight.quantized != nullptr) return static_cast<double>(stored_bytes(*weight.quantized));
  for (const std::string& name : {weight.name, graph::gguf::gguf_name(weight.name).value_or("")}) {
    if (const auto found = stored.of.find(name); found != stored.of.end()) return found->second;
  }
  if (stored.a_number > 0) return stored.a_number * static_cast<double>(weight.constant->size());
  return static_cast<double>(weight.constant->bytes());
}

const Shape& shape_of(const graph::Value& weight) {
  return weight.quantized != nullptr ? weight.quantized->codes.shape() : weight.constant->shape();
}

void add_decoder(const Graph& graph, const std::vector<graph::InferredValue>& infos, Outline& out) {
  // Numbers a token has in it: [B, T, heads * size] or [B, heads, T, size].
  const auto width = [&](ValueId id) {
    const Shape& shape = infos[id.index].info.shape;
    if (!infos[id.index].known || shape.size() < 3) return 0.0;
    return static_cast<double>(shape.back()) * (shape.size() == 4 ? static_cast<double>(shape[1]) : 1.0);
  };
  const auto inputs = graph.inputs();
  if (inputs.size() != 1 || graph.value(inputs[0]).dtype != DType::i64) return;
  for (NodeId id : graph.order()) {
    const graph::Node& node = graph.node(id);
    if (node.op_type == "RotaryEmbedding" && node.inputs.size() > 1 && graph.value(node.inputs[1]).is_constant())
      out.most_context = graph.value(node.inputs[1]).constant->shape()[0];
    if (node.op_type != "Attention" || node.attributes.get_int("is_causal", 0) == 0) continue;
    out.is_decoder = true;
    out.cache_numbers += width(node.inputs[1]) + width(node.inputs[2]);
    out.attention_macs += 2 * width(node.outputs[0]);
  }
}

}  // namespace

Result<Outline> outline(const std::string& model) {
  StoredBytes stored;
  std::optional<Graph> read;
  Outline out;
  std::error_code ignored;
  if (fs::is_directory(model, ignored) && graph::hf::is_checkpoint(model)) {
    CTK_TRY(read, decoder_of_folder(model, stored));
  } else if (is_gguf_file(model)) {
    auto decoder = decoder_of_gguf(model, stored);
    if (!decoder) return std::move(decoder).error().with_context(model);
    read = std::move(*decoder);
  }
  LoadedModel loaded;
  if (read) {
    loaded.graph = std::move(*read);
    loaded.sample_shapes = graph::default_input_shapes(loaded.graph, 1);
  } else {
    CTK_TRY(loaded, load_model(model));
  }
  const Graph& graph = loaded.graph;
  out.name = graph.name;
  CTK_TRY(const auto infos, graph::infer_shapes(graph, batch_shapes(loaded, 1), true));
  add_decoder(graph, infos, out);
  std::set<ValueId> seen, tables;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    const graph::Value& weight = graph.value(layer.weight);
    const std::size_t count = elements(shape_of(weight));
    Matrix matrix{layer, 0, 0, 0};
    matrix.macs = out.is_decoder ? static_cast<double>(count) : static_cast<double>(layer_macs(loaded, layer.node));
    if (graph.is_output(graph.node(layer.node).outputs[0]) || graph.node(layer.node).name == "lm_head")
      out.head_macs += matrix.macs;
    if (seen.insert(layer.weight).second) {  // else computed again, read from the same bytes
      matrix.count = count;
      matrix.stored_bytes = bytes_of(weight, stored);
    }
    out.matrices.push_back(std::move(matrix));
  }
  for (NodeId id : graph.order()) {
    const graph::Node& node = graph.node(id);
    if (node.op_type == "Gather" && graph.value(node.inputs[0]).is_constant() && !seen.contains(node.inputs[0]) &&
        is_float(graph.value(node.inputs[0]).dtype) && shape_of(graph.value(node.inputs[0])).size() == 2)
      tables.insert(node.inputs[0]);
  }
  for (ValueId id : tables) {
    const graph::Value& table = graph.value(id);
    const double bytes = bytes_of(table, stored);
    out.table_parameters += static_cast<double>(elements(shape_of(table)));
    out.table_bytes += bytes;
    out.row_bytes += bytes / static_cast<double>(shape_of(table)[0]);
  }
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const ValueId id{static_cast<std::uint32_t>(i)};
    const graph::Value& value = graph.value(id);
    if (value.is_removed || value.consumers.empty() || !value.constant || !is_float(value.dtype)) continue;
    if (seen.contains(id) || tables.contains(id) || value.constant->shape().size() > 1) continue;
    out.other_bytes += static_cast<double>(value.constant->bytes());
    out.parameters += static_cast<std::int64_t>(value.constant->size());
  }
  for (const Matrix& matrix : out.matrices) out.parameters += static_cast<std::int64_t>(matrix.count);
  out.parameters += static_cast<std::int64_t>(out.table_parameters);
  return out;
}

}  // namespace ctk::pipeline::estimate
