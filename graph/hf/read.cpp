#include "graph/hf/read.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "core/printable.h"
#include "graph/hf/checkpoint.h"
#include "graph/hf/config.h"
#include "graph/hf/packed_weights.h"

namespace ctk::graph::hf {

using ctk::to_string;

namespace {

// Ends of names that hold no weight of the function we build.
bool is_idle(const std::string& name, bool is_encoder) {
  for (const char* end : {".rotary_emb.inv_freq", ".masked_bias", "embeddings.position_ids"}) {
    if (name.ends_with(end)) return true;
  }
  return is_encoder && (name.find("pooler.") != std::string::npos || name.starts_with("cls."));
}

class Reader {
 public:
  explicit Reader(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}

  Result<Graph> build(ModelConfig config) {
    const TensorLookup lookup = [this](const std::string& name, const Shape& shape) { return look_up(name, shape); };
    CodeLookup codes;
    if (config.quantization) {
      quantization_ = &*config.quantization;
      codes = [this](const std::string& module, const Shape& shape) { return look_up_codes(module, shape); };
    }
    if (auto* encoder = std::get_if<EncoderConfig>(&config.model)) {
      // Saved from a model with a head, or from the model alone.
      for (const char* prefix : {"", "bert."}) {
        if (checkpoint_.find(prefix + std::string("embeddings.word_embeddings.weight")) != nullptr)
          encoder->prefix = prefix;
      }
      return finish(build_encoder(*encoder, lookup, codes), config, true);
    }
    const auto& decoder = std::get<DecoderConfig>(config.model);
    auto graph = build_decoder(decoder, lookup, codes);
    if (graph && decoder.ties_embeddings) CTK_CHECK(check_tied_head(*graph));
    return finish(std::move(graph), config, false);
  }

 private:
  Result<Tensor> look_up(const std::string& name, const Shape& shape) {
    if (const auto known = dequantized_.extract(name)) return std::move(known.mapped());
    const std::string module = name.ends_with(".weight") ? name.substr(0, name.size() - 7) : "";
    if (shape.size() == 2 && !module.empty() && holds_codes(checkpoint_, module)) {
      if (quantization_ == nullptr) return no_configuration(module);
      CTK_TRY(const auto weight, read_module(module, shape, "Embedding"));
      if (weight.codes == nullptr) return weight.floats;
      ++set_aside_["are of tables, which are read as floats: they are dequantized to float32"];
      return dequantize(*weight.codes);
    }
    const StoredTensor* stored = checkpoint_.find(name);
    if (stored != nullptr && stored->shape != shape) {
      return input_error(checkpoint_.folder() + ": tensor \"" + printable(name) + "\": expected shape " +
                         to_string(shape) + " by config.json, found " + to_string(stored->shape) +
                         ". Take both from one checkpoint");
    }
    used_.insert(name);
    return checkpoint_.tensor(name);
  }

  Error no_configuration(const std::string& module) const {
    return input_error(checkpoint_.folder() + "/config.json: quantization_config: expected one, as \"" +
                       printable(module) +
                       "\" is stored as codes, found none. Copy what quantize_config.json or "
                       "quant_config.json says into it");
  }

  Result<CodedWeight> read_module(const std::string& module, const Shape& shape, std::string_view kind) {
    CTK_TRY(const CodeGroup* group, group_of(*quantization_, module, kind));
    if (group == nullptr) {
      return input_error(checkpoint_.folder() + "/config.json: quantization_config: expected a group for \"" +
                         printable(module) + "\", which is stored as codes, found it " +
                         "left out or no target. Correct the lists of targets and of layers that are not quantized");
    }
    CTK_TRY(CodedWeight weight, read_codes(checkpoint_, *group, module, shape));
    used_.insert(weight.tensors.begin(), weight.tensors.end());
    if (weight.codes == nullptr) ++set_aside_[weight.reason];
    return weight;
  }

  Result<std::shared_ptr<const QuantTensor>> look_up_codes(const std::string& module, const Shape& shape) {
    if (!holds_codes(checkpoint_, module)) {
      CTK_TRY(const CodeGroup* group, group_of(*quantization_, module, "Linear"));
      const bool is_usual = module == "lm_head" && quantization_->method != "compressed-tensors";
      if (group != nullptr && !is_usual && checkpoint_.find(module + ".weight") != nullptr) unlisted_.push_back(module);
      return std::shared_ptr<const QuantTensor>();
    }
    CTK_TRY(CodedWeight weight, read_module(module, shape, "Linear"));
    if (weight.codes != nullptr) {
      ++schemes_[to_string(weight.codes->scheme)];
    } else {
      dequantized_[module + ".weight"] = std::move(weight.floats);
    }
    return weight.codes;
  }

  // Old writers give every coded layer a bias: one of zeros adds nothing.
  bool is_zero_bias(const std::string& name) const {
    if (quantization_ == nullptr || !name.ends_with(".bias")) return false;
    if (!holds_codes(checkpoint_, name.substr(0, name.size() - 5))) return false;
    const auto stored = checkpoint_.tensor(name);
    if (!stored || !is_float(stored->dtype())) return false;
    const auto floats = to_f32(*stored);
    return floats && std::ranges::all_of(floats->values<float>(), [](float v) { return v == 0.0f; });
  }

  void note_codes(std::vector<std::string>& notes) const {
    if (quantization_ == nullptr) return;
    for (const auto& [scheme, count] : schemes_) {
      notes.push_back(std::to_string(count) + " weights are the codes of the file (" + quantization_->method + ", " +
                      scheme + ")");
    }
    for (const auto& [reason, count] : set_aside_) notes.push_back(std::to_string(count) + " weights " + reason);
    if (!unlisted_.empty()) {
      notes.push_back(std::to_string(unlisted_.size()) +
                      " layers are stored as floats though quantization_config does not leave them out, the first \"" +
                      printable(unlisted_[0]) + "\": they are read as floats");
    }
  }

  // A tied head that is stored all the same: the embedding is what counts.
  Status check_tied_head(Graph& graph) {
    const std::string head = "lm_head.weight", embedding = "model.embed_tokens.weight";
    if (checkpoint_.find(head) == nullptr) return {};
    CTK_TRY(const Tensor stored, checkpoint_.tensor(head));
    CTK_TRY(const Tensor tied, checkpoint_.tensor(embedding));
    used_.insert(head);
    const bool is_same = stored.dtype() == tied.dtype() && stored.shape() == tied.shape() &&
                         std::memcmp(stored.data(), tied.data(), tied.bytes()) == 0;
    if (!is_same) {
      graph.reader_notes.push_back(
          "lm_head.weight was left out: config.json ties the head to the embedding, which differs");
    }
    return {};
  }

  Result<Graph> finish(Result<Graph> graph, const ModelConfig& config, bool is_encoder) {
    if (!graph) return graph;
    std::size_t unused = 0;
    std::string first;
    for (const std::string& name : checkpoint_.names()) {
      if (used_.contains(name) || is_idle(name, is_encoder) || is_zero_bias(name)) continue;
      if (unused++ == 0) first = name;
    }
    if (unused != 0) {
      return input_error(checkpoint_.folder() + ": expected the tensors that " + graph->name +
                         " by config.json has, found " + std::to_string(unused) + " more, the first \"" +
                         printable(first) + "\". Check that config.json belongs to these weights");
    }
    graph->reader_notes.insert(graph->reader_notes.begin(), config.notes.begin(), config.notes.end());
    graph->reader_notes.insert(graph->reader_notes.end(), checkpoint_.notes().begin(), checkpoint_.notes().end());
    note_codes(graph->reader_notes);
    return graph;
  }

  Checkpoint checkpoint_;
  const QuantizationConfig* quantization_ = nullptr;
  std::set<std::string> used_;
  std::map<std::string, Tensor> dequantized_;     // that no note can hold, until they are asked for
  std::map<std::string, std::size_t> schemes_;    // weights that are codes
  std::map<std::string, std::size_t> set_aside_;  // weights that were codes, by why they are none here
  std::vector<std::string> unlisted_;
};

}  // namespace

bool is_checkpoint(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::path(path) / "config.json", ignored);
}

Result<Graph> read_hf(const std::string& folder, std::vector<std::string>* data_files) {
  const std::string config_path = (std::filesystem::path(folder) / "config.json").string();
  CTK_TRY(ModelConfig config, read_config(config_path));
  CTK_TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  if (data_files != nullptr) {
    *data_files = checkpoint.paths();
    data_files->insert(data_files->begin(), config_path);
  }
  return Reader(std::move(checkpoint)).build(std::move(config));
}

}  // namespace ctk::graph::hf
