#include "graph/gguf/llama.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "core/printable.h"
#include "graph/gguf/names.h"

namespace ctk::graph::gguf {
namespace {

constexpr std::string_view kEmbedding = "token_embd.weight", kFrequencies = "rope_freqs.weight";

// Keys below the architecture's name that are read, or that tell about the file and not about the function.
constexpr std::string_view kUnderstood[] = {"context_length",
                                            "embedding_length",
                                            "block_count",
                                            "feed_forward_length",
                                            "vocab_size",
                                            "attention.head_count",
                                            "attention.head_count_kv",
                                            "attention.layer_norm_rms_epsilon",
                                            "attention.key_length",
                                            "attention.value_length",
                                            "attention.sliding_window",
                                            "attention.causal",
                                            "rope.dimension_count",
                                            "rope.freq_base",
                                            "rope.scale_linear",
                                            "rope.scaling.type",
                                            "rope.scaling.factor",
                                            "rope.scaling.original_context_length",
                                            "rope.scaling.attn_factor",
                                            "rope.scaling.finetuned",
                                            "rope.scaling.yarn_beta_fast",
                                            "rope.scaling.yarn_beta_slow",
                                            "tensor_data_layout",
                                            "expert_used_count"};

// Reads the keys of one architecture; the first failure is kept, later reads give their fallback.
class Keys {
 public:
  Keys(const File& file, std::string_view architecture) : file_(file), prefix_(std::string(architecture) + ".") {}

  bool has(std::string_view key) const { return file_.find(prefix_ + std::string(key)) != nullptr; }
  std::int64_t integer(std::string_view key) {
    return keep(file_.integer(prefix_ + std::string(key)), std::int64_t{0});
  }
  std::int64_t integer(std::string_view key, std::int64_t fallback) { return has(key) ? integer(key) : fallback; }
  double real(std::string_view key) { return keep(file_.real(prefix_ + std::string(key)), 0.0); }
  double real(std::string_view key, double fallback) { return has(key) ? real(key) : fallback; }
  std::string text(std::string_view key, std::string fallback) {
    return has(key) ? keep(file_.text(prefix_ + std::string(key)), std::string()) : fallback;
  }
  // One number, or one a layer that must be the same everywhere.
  std::int64_t uniform(std::string_view key) {
    const MetadataValue* value = file_.find(prefix_ + std::string(key));
    if (value == nullptr || value->type != ValueType::array) return integer(key);
    const auto values = keep(file_.integers(prefix_ + std::string(key)), std::vector<std::int64_t>());
    if (values.empty() || std::ranges::any_of(values, [&](std::int64_t v) { return v != values[0]; })) {
      fail(key, "one number for all layers", "an array of " + std::to_string(values.size()) + " that differ",
           "Such models are not read yet");
      return 0;
    }
    return values[0];
  }

  void fail(std::string_view key, const std::string& expected, const std::string& found, const std::string& remedy) {
    if (status_)
      status_ = input_error("key \"" + prefix_ + std::string(key) + "\": expected " + expected + ", found " + found +
                            ". " + remedy);
  }

  // Everything else below the prefix must be off: 0 or false.
  void refuse_unknown() {
    for (std::string_view key : file_.keys()) {
      if (!key.starts_with(prefix_)) continue;
      const std::string_view name = key.substr(prefix_.size());
      if (std::ranges::find(kUnderstood, name) != std::end(kUnderstood) || is_off(*file_.find(key))) continue;
      fail(printable(name), "a key this reader understands", "one that may change the function",
           "Convert a model without it");
    }
  }

  const Status& status() const { return status_; }

 private:
  static bool is_off(const MetadataValue& value) {
    return value.type != ValueType::array && value.type != ValueType::string &&
           std::ranges::all_of(value.bytes, [](std::byte b) { return b == std::byte{0}; });
  }

  template <class T, class Value>
  Value keep(Result<T> read, Value fallback) {
    if (read) return static_cast<Value>(std::move(*read));
    if (status_) status_ = std::move(read).error();
    return fallback;
  }

  const File& file_;
  std::string prefix_;
  Status status_;
};

hf::RopeConfig rope_config(Keys& keys, std::int64_t head_dim) {
  hf::RopeConfig rope;
  rope.theta = keys.real("rope.freq_base", 10000.0);
  if (keys.integer("rope.dimension_count", head_dim) != head_dim) {
    keys.fail("rope.dimension_count", "the head size " + std::to_string(head_dim),
              std::to_string(keys.integer("rope.dimension_count")), "Heads that turn in part are not read yet");
  }
  rope.factor = keys.real("rope.scaling.factor", keys.real("rope.scale_linear", 1.0));
  const bool has_linear = !keys.has("rope.scaling.type") && rope.factor != 1.0;
  const std::string type = keys.text("rope.scaling.type", has_linear ? "linear" : "none");
  if (!(rope.theta > 0 && std::isfinite(rope.theta)) || !(rope.factor > 0 && std::isfinite(rope.factor))) {
    keys.fail("rope.freq_base", "it and rope.scaling.factor finite and above 0",
              std::to_string(rope.theta) + " and " + std::to_string(rope.factor), "Convert the model again");
  }
  if (type == "linear") {
    rope.type = hf::RopeType::linear;
  } else if (type == "yarn") {
    rope.type = hf::RopeType::yarn;
    rope.original_max_positions = keys.integer("rope.scaling.original_context_length");
    rope.beta_fast = keys.real("rope.scaling.yarn_beta_fast", 32.0);
    rope.beta_slow = keys.real("rope.scaling.yarn_beta_slow", 1.0);
    const double factor = keys.real("rope.scaling.attn_factor", 1.0);
    if (factor != 1.0) rope.attention_factor = factor * (1.0 + 0.1 * std::log(rope.factor));
  } else if (type != "none") {
    keys.fail("rope.scaling.type", "none, linear or yarn", "\"" + printable(type) + "\"", "Others are not read yet");
  }
  return rope;
}

class Reader {
 public:
  Reader(const File& file, hf::DecoderConfig config, const Architecture& architecture)
      : file_(file), config_(std::move(config)), architecture_(architecture) {}

  Result<Graph> build() {
    CTK_TRY(Graph graph, hf::build_decoder(config_, [this](const std::string& name, const Shape& shape) {
              return look_up(name, shape);
            }));
    std::size_t unused = 0, coded = 0;
    std::string first;
    for (const TensorInfo& tensor : file_.tensors()) {
      coded += tensor.type->elements > 1 ? 1 : 0;
      if (used_.contains(tensor.name) || tensor.name == kFrequencies) continue;
      if (unused++ == 0) first = printable(tensor.name);
    }
    if (unused != 0) {
      return input_error("expected the tensors of a decoder of architecture " + std::string(architecture_.gguf) +
                         ", found " + std::to_string(unused) + " more, the first \"" + first +
                         "\". Check that the file is one of its kind");
    }
    if (coded != 0)
      graph.reader_notes.push_back(std::to_string(coded) + " quantized tensors were dequantized to float32");
    return graph;
  }

 private:
  Result<Tensor> look_up(const std::string& hf_name, const Shape& shape) {
    const std::string name = gguf_name(hf_name).value_or(hf_name);
    const TensorInfo* stored = file_.find_tensor(name);
    if (stored == nullptr) {
      return input_error("expected a tensor \"" + name + "\" (" + hf_name + "), found none. The file is incomplete");
    }
    if (stored->shape != shape) {
      return input_error("tensor \"" + name + "\": expected shape " + ctk::to_string(shape) + " by the keys, found " +
                         ctk::to_string(stored->shape) + ". The file is damaged");
    }
    used_.insert(stored->name);
    CTK_TRY(Tensor floats, file_.floats(*stored));
    if (!architecture_.interleaves_rotary || !has_rotary_rows(hf_name)) return floats;
    return turned(floats);
  }

  // Rows from llama.cpp's (pair, half) order to (half, pair).
  Result<Tensor> turned(const Tensor& source) const {
    CTK_TRY(Tensor out, Tensor::zeros(DType::f32, source.shape()));
    const auto rows = static_cast<std::size_t>(source.shape()[0]), row = source.size() / rows;
    const float* from = source.values<float>().data();
    float* to = out.mutable_values<float>().data();
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(to + hf_row(r, static_cast<std::size_t>(config_.head_dim)) * row, from + r * row,
                  row * sizeof(float));
    return out;
  }

  const File& file_;
  const hf::DecoderConfig config_;
  const Architecture& architecture_;
  std::set<std::string_view> used_;
};

Result<const Architecture*> architecture_of(const File& file) {
  CTK_TRY(const std::string_view name, file.text("general.architecture"));
  const Architecture* known = architecture_by_gguf(name);
  if (known == nullptr) {
    return input_error("key \"general.architecture\": expected one of " + known_gguf_architectures() + ", found \"" +
                       printable(name) + "\". Give a model of a known architecture");
  }
  return known;
}

Status check_vocabulary(const File& file, std::int64_t rows) {
  const MetadataValue* tokens = file.find("tokenizer.ggml.tokens");
  if (tokens == nullptr || tokens->count == static_cast<std::uint64_t>(rows)) return {};
  return input_error("key \"tokenizer.ggml.tokens\": expected " + std::to_string(rows) +
                     " tokens, as many as the embedding has rows, found " + std::to_string(tokens->count) +
                     ". Convert the model again");
}

}  // namespace

Result<hf::DecoderConfig> decoder_config(const File& file) {
  CTK_TRY(const Architecture* known, architecture_of(file));
  Keys keys(file, known->gguf);
  hf::DecoderConfig c;
  c.architecture = known->hf;
  c.hidden_size = keys.integer("embedding_length");
  c.intermediate_size = keys.uniform("feed_forward_length");
  c.layers = keys.integer("block_count");
  c.heads = keys.uniform("attention.head_count");
  c.kv_heads = keys.has("attention.head_count_kv") ? keys.uniform("attention.head_count_kv") : c.heads;
  c.head_dim = keys.integer("attention.key_length", c.heads > 0 ? c.hidden_size / c.heads : 0);
  if (keys.integer("attention.value_length", c.head_dim) != c.head_dim) {
    keys.fail("attention.value_length", "the key length " + std::to_string(c.head_dim),
              std::to_string(keys.integer("attention.value_length")), "Such models are not read yet");
  }
  c.max_positions = keys.integer("context_length");
  c.sliding_window = keys.integer("attention.sliding_window", 0);
  c.norm_epsilon = keys.real("attention.layer_norm_rms_epsilon");
  if (keys.has("attention.causal")) {
    const auto is_causal = file.truth(std::string(known->gguf) + ".attention.causal");
    if (!is_causal || !*is_causal)
      keys.fail("attention.causal", "true", "something else", "Encoders in GGUF are not read yet");
  }
  c.rope = rope_config(keys, c.head_dim);
  keys.refuse_unknown();
  CTK_CHECK(keys.status());
  c.activation = known->is_gelu ? hf::Activation::gelu_tanh : hf::Activation::silu;
  if (known->scales_embedding) c.embedding_scale = std::sqrt(static_cast<double>(c.hidden_size));
  const TensorInfo* embedding = file.find_tensor(kEmbedding);
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return input_error("expected a matrix \"token_embd.weight\", found none. The file is no whole model");
  }
  c.vocab_size = embedding->shape[0];
  CTK_CHECK(check_vocabulary(file, c.vocab_size));
  const auto has = [&](std::string_view name) { return file.find_tensor(name) != nullptr; };
  c.ties_embeddings = !has("output.weight");
  c.has_qkv_bias = has("blk.0.attn_q.bias");
  c.has_output_bias = has("blk.0.attn_output.bias");
  c.has_mlp_bias = has("blk.0.ffn_gate.bias");
  c.has_qk_norm = has("blk.0.attn_q_norm.weight");
  if (const TensorInfo* factors = file.find_tensor(kFrequencies)) {
    CTK_TRY(const Tensor floats, file.floats(*factors));
    if (floats.size() != static_cast<std::size_t>(c.head_dim) / 2) {
      return input_error("tensor \"rope_freqs.weight\": expected " + std::to_string(c.head_dim / 2) +
                         " numbers, found " + std::to_string(floats.size()) + ". Convert the model again");
    }
    for (float factor : floats.values<float>()) {
      if (factor > 0 && std::isfinite(factor)) continue;
      return input_error(
          "tensor \"rope_freqs.weight\": expected finite numbers above 0, which divide frequencies, found " +
          std::to_string(factor) + ". Convert the model again");
    }
    c.rope.frequency_factors.assign(floats.values<float>().begin(), floats.values<float>().end());
  }
  return c;
}

Result<Graph> read_decoder(const File& file) {
  CTK_TRY(const Architecture* known, architecture_of(file));
  CTK_TRY(hf::DecoderConfig config, decoder_config(file));
  return Reader(file, std::move(config), *known).build();
}

Result<Graph> read_gguf(const std::string& path) {
  CTK_TRY(const File file, File::open(path));
  auto graph = read_decoder(file);
  if (!graph) return std::move(graph).error().with_context(path);
  return graph;
}

}  // namespace ctk::graph::gguf
