#include "export/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>

#include "core/file.h"
#include "core/printable.h"
#include "export/pack_quantized.h"
#include "graph/floats.h"
#include "graph/hf/checkpoint.h"
#include "graph/hf/json.h"
#include "graph/hf/packed_weights.h"
#include "graph/hf/read.h"
#include "graph/layer.h"

namespace ctk::exporter {
namespace {

namespace fs = std::filesystem;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Value;
using graph::ValueId;
using graph::hf::Checkpoint;
using Json = nlohmann::ordered_json;

constexpr const char* kHead = "lm_head";
constexpr const char* kEmbedding = "model.embed_tokens";

// Whether the checkpoint has a weight for the module, as floats or as codes.
bool holds_weight(const Checkpoint& checkpoint, const std::string& module) {
  return checkpoint.find(module + ".weight") != nullptr || graph::hf::holds_codes(checkpoint, module);
}

// The graph's layers by the module names of the checkpoint.
class Modules {
 public:
  static Result<Modules> of(const Graph& graph, const Checkpoint& checkpoint) {
    Modules modules(graph);
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (node.op_type == "Gemm" || node.op_type == "MatMul" || node.op_type == "Conv") {
        CTK_CHECK(modules.add_linear(node, checkpoint));
      } else if (node.op_type == "Gather" || node.op_type == "RMSNormalization" ||
                 node.op_type == "LayerNormalization") {
        modules.add_floats(node, checkpoint);
      } else {
        CTK_CHECK(modules.require_no_numbers(id));
      }
    }
    return modules;
  }

  struct Coded {
    std::shared_ptr<const QuantTensor> weight;
    PackedGrid grid;
  };
  const std::map<std::string, Coded>& coded() const { return coded_; }
  const std::vector<std::string>& float_linears() const { return float_linears_; }
  const std::map<std::string, const Value*>& all_floats() const { return floats_; }
  // The graph's numbers of a stored tensor; null: it has none.
  const Value* floats(const std::string& tensor) const {
    const auto found = floats_.find(tensor);
    return found == floats_.end() ? nullptr : found->second;
  }
  // The head has weights of its own, which the source takes from the embedding.
  bool unties_head() const { return unties_head_; }

 private:
  explicit Modules(const Graph& graph) : graph_(&graph) {}

  const Value* input(const Node& node, std::size_t at) const {
    if (node.inputs.size() <= at || !node.inputs[at].is_valid()) return nullptr;
    const Value& value = graph_->value(node.inputs[at]);
    return value.is_constant() ? &value : nullptr;
  }

  Status add_linear(const Node& node, const Checkpoint& checkpoint) {
    const Value* weight = input(node, 1);
    if (weight == nullptr) return {};
    const bool is_tied =
        node.name == kHead && !holds_weight(checkpoint, node.name) && holds_weight(checkpoint, kEmbedding);
    const bool is_coded = weight->quantized != nullptr && weight->quantized->scheme.is_integer_weight();
    if (!is_tied && !holds_weight(checkpoint, node.name)) {
      if (!is_coded && node.op_type != "MatMul") return {};
      return input_error("safetensors: \"" + printable(node.name) +
                         "\": expected a layer whose weight the checkpoint " + checkpoint.folder() +
                         " holds, found no tensor \"" + printable(node.name) +
                         ".weight\". Leave the layer out by `ignore`, or choose another format");
    }
    if (const Value* bias = input(node, 2)) floats_[node.name + ".bias"] = bias;
    if (is_coded) {
      auto grid = packed_grid(*weight->quantized);
      if (!grid) return std::move(grid).error().with_context("safetensors: \"" + printable(node.name) + "\"");
      coded_[node.name] = {weight->quantized, *grid};
      unties_head_ = unties_head_ || is_tied;
    } else {
      float_linears_.push_back(node.name);
      const bool is_embedding = std::ranges::any_of(
          weight->consumers, [this](NodeId id) { return graph_->node(id).op == graph::Op::Gather; });
      if (!is_tied || !is_embedding) floats_[node.name + ".weight"] = weight;
      unties_head_ = unties_head_ || (is_tied && !is_embedding);
    }
    return {};
  }

  // Tables of angles and scales of the embedding are in the configuration; other numbers would be lost.
  Status require_no_numbers(NodeId id) const {
    const Node& node = graph_->node(id);
    if (node.op_type == "RotaryEmbedding") return {};
    for (std::size_t at = 0; at < node.inputs.size(); ++at) {
      const Value* value = input(node, at);
      if (value == nullptr || value->dtype != DType::f32 || !value->constant || value->constant->size() == 1) continue;
      return input_error("safetensors: node \"" + printable(graph_->address(id)) + "\" (" + printable(node.op_type) +
                         "): expected only what the checkpoint's architecture has, found numbers of its own. Leave " +
                         "it out (stages.transform.insert_mul: false), or choose another format");
    }
    return {};
  }

  void add_floats(const Node& node, const Checkpoint& checkpoint) {
    for (std::size_t at = 0; at < node.inputs.size(); ++at) {
      const Value* value = input(node, at);
      if (value == nullptr || value->quantized != nullptr || value->dtype != DType::f32) continue;
      const std::string name = node.name + (at == 2 ? ".bias" : ".weight");
      if (checkpoint.find(name) != nullptr || (at != 2 && holds_weight(checkpoint, node.name))) floats_[name] = value;
    }
  }

  const Graph* graph_;
  std::map<std::string, Coded> coded_;
  std::map<std::string, const Value*> floats_;
  std::vector<std::string> float_linears_;
  bool unties_head_ = false;
};

// Tensors in the order of their names, the header before them.
class File {
 public:
  void add(const std::string& name, const std::string& type, const Tensor& tensor) {
    Json& entry = header_[name];
    entry["dtype"] = type;
    entry["shape"] = tensor.shape();
    entry["data_offsets"] = {data_.size(), data_.size() + tensor.bytes()};
    data_.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  }
  std::string bytes() {
    Json whole;
    whole["__metadata__"] = {{"format", "pt"}};
    whole.update(header_);
    std::string text = whole.dump(-1, ' ', false, Json::error_handler_t::replace);
    text.append((8 - text.size() % 8) % 8, ' ');
    const std::uint64_t length = text.size();
    std::string out(8, '\0');
    std::memcpy(out.data(), &length, 8);  // little-endian, as every host we build for
    return out + text + data_;
  }

 private:
  Json header_ = Json::object();
  std::string data_;
};

// Norms of some models are stored without the 1 that the graph has added.
bool is_plus_one(std::span<const float> stored, std::span<const float> found) {
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (stored[i] + 1.0f != found[i]) return false;
  }
  return true;
}

Status add_source_tensor(const Checkpoint& checkpoint, const std::string& name, const Value* value, File& file) {
  CTK_TRY(const Tensor stored, checkpoint.tensor(name));
  if (value != nullptr) {
    CTK_TRY(const Tensor floats, to_f32(stored));
    const Tensor found = value->quantized != nullptr ? dequantize(*value->quantized) : graph::floats_of(*value);
    const bool is_same =
        found.shape() == floats.shape() && (std::memcmp(found.data(), floats.data(), found.bytes()) == 0 ||
                                            is_plus_one(floats.values<float>(), found.values<float>()));
    if (!is_same) {
      file.add(name, "F32", found);
      return {};
    }
  }
  file.add(name, checkpoint.find(name)->type, stored);
  return {};
}

Status add_coded(const std::string& module, const QuantTensor& weight, File& file) {
  CTK_TRY(const PackedWeight packed, pack_weight(weight));
  file.add(module + ".weight_packed", "I32", packed.words);
  file.add(module + ".weight_scale", packed.scales.dtype() == DType::f16 ? "F16" : "F32", packed.scales);
  file.add(module + ".weight_shape", "I64", Tensor::of<std::int64_t>({2}, weight.codes.shape()));
  if (packed.zeros) file.add(module + ".weight_zero_point", "I32", *packed.zeros);
  return {};
}

Result<Checkpoint> source_of(const std::string& model) {
  if (!graph::hf::is_checkpoint(model)) {
    return input_error(
        "safetensors: expected a model read from a checkpoint folder, whose configuration and tokenizer "
        "the written one takes over, found " +
        model + ". Choose another format");
  }
  return Checkpoint::open(model);
}

Json weights_entry(const PackedGrid& grid) {
  Json entry;
  entry["num_bits"] = grid.bits;
  entry["type"] = "int";
  entry["symmetric"] = !grid.is_affine;
  entry["strategy"] = grid.group_size == 0 ? "channel" : "group";
  entry["group_size"] = grid.group_size == 0 ? Json(nullptr) : Json(grid.group_size);
  entry["block_structure"] = nullptr;
  entry["dynamic"] = false;
  entry["actorder"] = nullptr;
  entry["observer"] = "minmax";
  entry["observer_kwargs"] = Json::object();
  return entry;
}

Json quantization_config(const Modules& modules) {
  std::map<PackedGrid, std::vector<std::string>> by_grid;
  for (const auto& [module, coded] : modules.coded()) by_grid[coded.grid].push_back(module);
  Json config;
  config["quant_method"] = "compressed-tensors";
  config["format"] = "pack-quantized";
  config["quantization_status"] = "compressed";
  config["global_compression_ratio"] = nullptr;
  config["kv_cache_scheme"] = nullptr;
  config["config_groups"] = Json::object();
  for (const auto& [grid, names] : by_grid) {
    Json& group = config["config_groups"]["group_" + std::to_string(config["config_groups"].size())];
    // By class where all layers have one grid: readers that fuse layers match classes.
    group["targets"] = by_grid.size() == 1 ? Json{"Linear"} : Json(names);
    group["weights"] = weights_entry(grid);
    group["input_activations"] = nullptr;
    group["output_activations"] = nullptr;
    group["format"] = "pack-quantized";
  }
  config["ignore"] = modules.float_linears();
  return config;
}

Result<std::string> weights_file(const Modules& modules, const Checkpoint& checkpoint) {
  File file;
  for (const std::string& name : checkpoint.names()) {
    const bool is_weight = name.ends_with(".weight");
    if (is_weight && modules.coded().contains(name.substr(0, name.size() - 7))) continue;
    if (graph::hf::is_part_of_codes(checkpoint, name)) continue;
    CTK_CHECK(add_source_tensor(checkpoint, name, modules.floats(name), file));
  }
  // Weights that the source holds as codes and the graph as floats.
  for (const auto& [name, value] : modules.all_floats()) {
    const bool is_written = checkpoint.find(name) != nullptr && !graph::hf::is_part_of_codes(checkpoint, name);
    if (!is_written && value->constant) file.add(name, "F32", graph::floats_of(*value));
  }
  for (const auto& [module, coded] : modules.coded()) CTK_CHECK(add_coded(module, *coded.weight, file));
  return file.bytes();
}

// One number for the whole model, or the configuration cannot say it.
Status agree(std::optional<std::int64_t>& known, std::int64_t found, const std::string& what) {
  if (!known) known = found;
  if (*known == found) return {};
  return input_error("safetensors: expected one " + what + " for all layers, since config.json holds one, found " +
                     std::to_string(*known) + " and " + std::to_string(found) +
                     ". Prune with ratios: uniform, or choose another format");
}

// Heads and width of the MLP as the graph has them: pruning makes them fewer than the source's configuration says.
Status state_sizes(const Graph& graph, Json& config) {
  std::optional<std::int64_t> heads, kv_heads, width;
  for (graph::NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op == graph::Op::Attention && node.attributes.find("q_num_heads") != nullptr) {
      CTK_CHECK(agree(heads, node.attributes.get_int("q_num_heads", 0), "number of attention heads"));
      CTK_CHECK(agree(kv_heads, node.attributes.get_int("kv_num_heads", 0), "number of key and value heads"));
    }
    const auto layer = graph::layer_of(graph, id);
    if (!layer || !(node.name.ends_with("mlp.gate_proj") || node.name.ends_with("intermediate.dense"))) continue;
    CTK_CHECK(agree(width, layer->channels, "width of the MLP"));
  }
  const auto number = [&](const char* key) {
    return config.contains(key) && config[key].is_number_integer() ? config[key].get<std::int64_t>() : -1;
  };
  if (width && config.contains("intermediate_size")) config["intermediate_size"] = *width;
  const std::int64_t before = number("num_attention_heads");
  if (!heads || before <= 0 || before == *heads) return {};
  const bool is_decoder = config.contains("num_key_value_heads") || config.contains("rope_theta");
  if (!is_decoder) {
    return input_error("safetensors: expected the " + std::to_string(before) +
                       " attention heads of config.json, found " + std::to_string(*heads) +
                       ": this kind of model has no key for the size of a head. Leave the " +
                       "query layers out of pruning with `ignore`, or choose another format");
  }
  if (!config.contains("head_dim")) config["head_dim"] = number("hidden_size") / before;
  config["num_attention_heads"] = *heads;
  config["num_key_value_heads"] = *kv_heads;
  return {};
}

Result<std::string> config_text(const Graph& graph, const Modules& modules, const std::string& model) {
  CTK_TRY(const std::string text, read_text(model + "/config.json"));
  Json config = Json::parse(text, nullptr, false);
  if (!config.is_object()) return input_error(model + "/config.json: expected a JSON object. Download it again");
  config.erase("quantization_config");
  if (!modules.coded().empty()) {
    config["quantization_config"] = quantization_config(modules);
    config[config.contains("dtype") ? "dtype" : "torch_dtype"] = "float32";
  }
  if (modules.unties_head()) config["tie_word_embeddings"] = false;
  CTK_CHECK(state_sizes(graph, config));
  return config.dump(2) + "\n";
}

// Layers whose last group is ragged: the readers know whole groups only.
std::vector<std::string> notes(const Modules& modules) {
  std::map<std::int64_t, std::string> cut;
  for (const auto& [module, coded] : modules.coded()) {
    if (coded.grid.group_size == 0 || coded.grid.group_size == coded.weight->scheme.group_size) continue;
    std::string& names = cut[coded.grid.group_size];
    names += (names.empty() ? "" : ", ") + module;
  }
  std::vector<std::string> lines;
  for (const auto& [size, names] : cut) {
    lines.push_back("safetensors: rows that groups do not divide are written in groups of " + std::to_string(size) +
                    ", with the same numbers and more scales: " + names);
  }
  return lines;
}

}  // namespace

Result<Written> write_safetensors(const Graph& graph, const std::string& model) {
  CTK_TRY(const Checkpoint checkpoint, source_of(model));
  CTK_TRY(const Modules modules, Modules::of(graph, checkpoint));
  Written written;
  CTK_TRY(std::string config, config_text(graph, modules, model));
  CTK_TRY(std::string weights, weights_file(modules, checkpoint));
  written.files = {{std::string(kSafetensorsFile), std::move(weights)},
                   {std::string(kSafetensorsOthers[0]), std::move(config)}};
  for (const std::string_view name : kSafetensorsOthers | std::views::drop(1)) {
    const fs::path path = fs::path(model) / fs::path(name).filename();
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    CTK_TRY(std::string bytes, read_text(path.string()));
    written.files.push_back({std::string(name), std::move(bytes)});
  }
  written.notes = notes(modules);
  return written;
}

}  // namespace ctk::exporter
