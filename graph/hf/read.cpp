#include "graph/hf/read.h"

#include <cstring>
#include <filesystem>
#include <set>

#include "core/printable.h"
#include "graph/hf/checkpoint.h"
#include "graph/hf/config.h"

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
    if (auto* encoder = std::get_if<EncoderConfig>(&config.model)) {
      // Saved from a model with a head, or from the model alone.
      for (const char* prefix : {"", "bert."}) {
        if (checkpoint_.find(prefix + std::string("embeddings.word_embeddings.weight")) != nullptr)
          encoder->prefix = prefix;
      }
      return finish(build_encoder(*encoder, lookup), config, true);
    }
    const auto& decoder = std::get<DecoderConfig>(config.model);
    auto graph = build_decoder(decoder, lookup);
    if (graph && decoder.ties_embeddings) CTK_CHECK(check_tied_head(*graph));
    return finish(std::move(graph), config, false);
  }

 private:
  Result<Tensor> look_up(const std::string& name, const Shape& shape) {
    const StoredTensor* stored = checkpoint_.find(name);
    if (stored != nullptr && stored->shape != shape) {
      return input_error(checkpoint_.folder() + ": tensor \"" + printable(name) + "\": expected shape " +
                         to_string(shape) + " by config.json, found " + to_string(stored->shape) +
                         ". Take both from one checkpoint");
    }
    used_.insert(name);
    return checkpoint_.tensor(name);
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
      if (used_.contains(name) || is_idle(name, is_encoder)) continue;
      if (unused++ == 0) first = name;
    }
    if (unused != 0) {
      return input_error(checkpoint_.folder() + ": expected the tensors that " + graph->name +
                         " by config.json has, found " + std::to_string(unused) + " more, the first \"" +
                         printable(first) + "\". Check that config.json belongs to these weights");
    }
    graph->reader_notes.insert(graph->reader_notes.begin(), config.notes.begin(), config.notes.end());
    graph->reader_notes.insert(graph->reader_notes.end(), checkpoint_.notes().begin(), checkpoint_.notes().end());
    return graph;
  }

  Checkpoint checkpoint_;
  std::set<std::string> used_;
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
