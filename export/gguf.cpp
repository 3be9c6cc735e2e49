#include "export/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/printable.h"
#include "export/gguf_metadata.h"

namespace ctk::exporter {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Value;
using graph::ValueId;
using graph::gguf::BlockType;
using graph::gguf::Sink;
using graph::gguf::TensorToWrite;

constexpr std::int64_t kBlock = 32;  // of every type we write codes in

const BlockType* type(std::string_view name) {
  return graph::gguf::find_block_type(name);
}

// Where a tensor's numbers come from and how its rows are turned.
struct Source {
  const Value* value = nullptr;
  std::size_t head_dim = 0;  // rows are turned head by head; 0: they stay
  std::size_t row(std::size_t written) const {
    return head_dim == 0 ? written : graph::gguf::hf_row(written, head_dim);
  }
};

// Finite, or an error that names how many are not and where the first lies.
Status check_finite(const std::string& name, std::span<const float> values) {
  const auto is_bad = [](float v) { return !std::isfinite(v); };
  const auto first = std::ranges::find_if(values, is_bad);
  if (first == values.end()) return {};
  return input_error(name + ": expected finite numbers, found " +
                     std::to_string(std::ranges::count_if(values, is_bad)) + " that are not, the first at " +
                     std::to_string(first - values.begin()) + ". Repair the model before it is exported");
}

bool are_halves(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return half_to_float(float_to_half(v)) == v; });
}

Status write_floats(const Sink& sink, const Tensor& floats, const Source& source, bool as_halves) {
  const auto rows = static_cast<std::size_t>(floats.shape()[0]), width = floats.size() / rows;
  std::vector<std::uint16_t> halves(as_halves ? width : 0);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const float> row = floats.values<float>().subspan(source.row(r) * width, width);
    if (as_halves) std::ranges::transform(row, halves.begin(), float_to_half);
    CTK_CHECK(sink(as_halves ? std::as_bytes(std::span(halves)) : std::as_bytes(row)));
  }
  return {};
}

// Codes whose rows are no whole blocks.
bool are_ragged(const Value& value) {
  return value.quantized != nullptr && value.quantized->scheme.is_integer_weight() &&
         value.quantized->codes.shape().size() == 2 && value.quantized->codes.shape()[1] % kBlock != 0;
}

// Codes [rows, width] with their scales as blocks. A block lies within one group, whose length is a multiple of it.
Status write_codes(const Sink& sink, const QuantTensor& weight, const BlockType& block, const Source& source) {
  const Shape& shape = weight.codes.shape();
  const auto rows = static_cast<std::size_t>(shape[0]), width = static_cast<std::size_t>(shape[1]);
  const std::size_t groups = weight.scales.size() == 1 ? 0 : weight.scales.size() / rows;
  const std::size_t length =
      weight.scheme.granularity == Granularity::per_group ? static_cast<std::size_t>(weight.scheme.group_size) : width;
  const std::vector<std::int8_t> codes = unpack_codes(weight);
  std::vector<std::uint16_t> scales(width / kBlock);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t from = source.row(r);
    for (std::size_t b = 0; b < scales.size(); ++b)
      scales[b] = float_to_half(weight.scales[groups == 0 ? 0 : from * groups + b * kBlock / length]);
    CTK_TRY(const std::string bytes,
            graph::gguf::encode(block, std::span(codes).subspan(from * width, width), scales, {}));
    CTK_CHECK(sink(std::as_bytes(std::span(bytes))));
  }
  return {};
}

class GgufBuilder {
 public:
  GgufBuilder(const Graph& graph, GgufSource source) : graph_(graph), source_(std::move(source)) {}

  Status build() {
    for (NodeId id : graph_.order()) nodes_.emplace(graph_.node(id).name, id);
    const auto& c = source_.config;
    CTK_TRY(const Value* embedding, constant("model.embed_tokens", "Gather", 0));
    CTK_CHECK(add("model.embed_tokens.weight", embedding, {c.vocab_size, c.hidden_size}));
    CTK_CHECK(add_norm("model.norm", c.hidden_size));
    CTK_TRY(const Value* head, constant("lm_head", "Gemm", 1));
    // llama.cpp takes token_embd where there is no output.
    if (head != embedding) CTK_CHECK(add_linear("lm_head", c.vocab_size, c.hidden_size, false));
    for (std::int64_t i = 0; i < c.layers; ++i) CTK_CHECK(add_layer("model.layers." + std::to_string(i)));
    if (!source_.frequency_factors.empty()) add_factors();
    CTK_CHECK(check_rest());
    source_.metadata.set_u32("general.file_type", file_type());
    return {};
  }

  const graph::gguf::Metadata& metadata() const { return source_.metadata; }
  const std::vector<TensorToWrite>& tensors() const { return tensors_; }

 private:
  Status add_layer(const std::string& layer) {
    const auto& c = source_.config;
    const std::string attention = layer + ".self_attn", mlp = layer + ".mlp";
    const std::int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
    CTK_CHECK(add_norm(layer + ".input_layernorm", c.hidden_size));
    CTK_CHECK(add_linear(attention + ".q_proj", q, c.hidden_size, c.has_qkv_bias));
    CTK_CHECK(add_linear(attention + ".k_proj", kv, c.hidden_size, c.has_qkv_bias));
    CTK_CHECK(add_linear(attention + ".v_proj", kv, c.hidden_size, c.has_qkv_bias));
    if (c.has_qk_norm) CTK_CHECK(add_norm(attention + ".q_norm", c.head_dim));
    if (c.has_qk_norm) CTK_CHECK(add_norm(attention + ".k_norm", c.head_dim));
    CTK_CHECK(add_linear(attention + ".o_proj", c.hidden_size, q, c.has_output_bias));
    CTK_CHECK(add_norm(layer + ".post_attention_layernorm", c.hidden_size));
    CTK_CHECK(add_linear(mlp + ".gate_proj", c.intermediate_size, c.hidden_size, c.has_mlp_bias));
    CTK_CHECK(add_linear(mlp + ".up_proj", c.intermediate_size, c.hidden_size, c.has_mlp_bias));
    return add_linear(mlp + ".down_proj", c.hidden_size, c.intermediate_size, c.has_mlp_bias);
  }

  // Input `at` of the node with this name, which must be a constant.
  Result<const Value*> constant(const std::string& name, const std::string& op, std::size_t at) {
    const auto found = nodes_.find(name);
    const Node* node = found == nodes_.end() ? nullptr : &graph_.node(found->second);
    if (node == nullptr || node->op_type != op || node->inputs.size() <= at || !node->inputs[at].is_valid() ||
        !graph_.value(node->inputs[at]).is_constant()) {
      return input_error("gguf: expected a node \"" + name + "\" (" + op + ") with constant weights, found " +
                         (node == nullptr ? "none" : "one of operator " + node->op_type) +
                         ". GGUF holds decoders as read from a checkpoint; choose another format");
    }
    known_.insert(found->second);
    return &graph_.value(node->inputs[at]);
  }

  Status add_norm(const std::string& module, std::int64_t size) {
    CTK_TRY(const Value* scale, constant(module, "RMSNormalization", 1));
    return add(module + ".weight", scale, {size});
  }

  Status add_linear(const std::string& module, std::int64_t out, std::int64_t in, bool has_bias) {
    CTK_TRY(const Value* weight, constant(module, "Gemm", 1));
    const Node& node = graph_.node(nodes_.at(module));
    const bool is_plain = node.attributes.get_int("transB", 0) == 1 && node.attributes.get_int("transA", 0) == 0 &&
                          node.attributes.get_float("alpha", 1.0f) == 1.0f &&
                          node.attributes.get_float("beta", 1.0f) == 1.0f;
    const bool found_bias = node.inputs.size() > 2 && node.inputs[2].is_valid();
    if (!is_plain || found_bias != has_bias) {
      return input_error("gguf: \"" + module + "\": expected x * weight' " + (has_bias ? "with" : "without") +
                         " bias as config.json has it, found a Gemm of another form. Choose another format");
    }
    CTK_CHECK(add(module + ".weight", weight, {out, in}));
    if (!has_bias) return {};
    CTK_TRY(const Value* bias, constant(module, "Gemm", 2));
    return add(module + ".bias", bias, {out});
  }

  Status add(const std::string& name, const Value* value, const Shape& shape) {
    Source source{value, 0};
    if (source_.architecture->interleaves_rotary && graph::gguf::has_rotary_rows(name))
      source.head_dim = static_cast<std::size_t>(source_.config.head_dim);
    const Shape& found = value->quantized != nullptr ? value->quantized->codes.shape() : value->constant->shape();
    if (found != shape) {
      return input_error("gguf: \"" + name + "\": expected shape " + to_string(shape) +
                         " by the model's configuration, "
                         "found " +
                         to_string(found) + ". Choose another format");
    }
    const std::string written = *graph::gguf::gguf_name(name);
    const bool is_float = value->quantized == nullptr || !value->quantized->scheme.is_integer_weight();
    if (is_float || are_ragged(*value)) return add_float(name, written, source);
    return add_codes(name, written, source);
  }

  Status add_float(const std::string& name, const std::string& written, const Source& source) {
    const bool is_ragged = are_ragged(*source.value);
    const bool is_stored_half = source.value->quantized != nullptr && !is_ragged;
    const Tensor stored = is_ragged        ? dequantize(*source.value->quantized)
                          : is_stored_half ? source.value->quantized->codes
                                           : *source.value->constant;
    CTK_TRY(const Tensor floats, stored.dtype() == DType::f32 ? Result<Tensor>(stored) : to_f32(stored));
    CTK_CHECK(check_finite("gguf: \"" + name + "\"", floats.values<float>()));
    const bool as_halves = floats.shape().size() == 2 && (is_stored_half || are_halves(floats.values<float>()));
    tensors_.push_back({written, type(as_halves ? "F16" : "F32"), floats.shape(),
                        [stored, source, as_halves](const Sink& sink) -> Status {
                          CTK_TRY(const Tensor values,
                                  stored.dtype() == DType::f32 ? Result<Tensor>(stored) : to_f32(stored));
                          return write_floats(sink, values, source, as_halves);
                        }});
    return {};
  }

  Status add_codes(const std::string& name, const std::string& written, const Source& source) {
    const std::shared_ptr<const QuantTensor> weight = source.value->quantized;
    const QuantScheme& scheme = weight->scheme;
    const std::string where = "gguf: \"" + name + "\": scheme " + to_string(scheme) + ": expected ";
    const Shape& shape = weight->codes.shape();
    const bool fits = shape.size() == 2 && weight->channel_axis == 0 && shape[1] % kBlock == 0 &&
                      (scheme.granularity != Granularity::per_group || scheme.group_size % kBlock == 0);
    if (!fits) {
      return input_error(
          where + "rows and groups of a multiple of 32, as Q4_0, Q5_0 and Q8_0 hold them, found rows of " +
          std::to_string(shape.back()) + ". Leave the layer out by `ignore`, or use groups of 32, 64 or " +
          "128 where the groups do not fit");
    }
    if (scheme.is_affine) {
      return input_error(where + "symmetric codes, found zero points, whose offsets Q4_1 and Q5_1 round to fp16. Use " +
                         "the scheme without _affine, or leave the layer out by `ignore`");
    }
    CTK_CHECK(check_finite("gguf: the scales of \"" + name + "\"", weight->scales));
    if (!are_halves(weight->scales)) {
      const auto bad =
          std::ranges::find_if(weight->scales, [](float s) { return half_to_float(float_to_half(s)) != s; });
      return input_error(where + "scales that are fp16 numbers, as GGUF stores them, found " + std::to_string(*bad) +
                         " at " + std::to_string(bad - weight->scales.begin()) +
                         ". Use a scheme with fp16 scales (w4a16_g32, w8a16_g32), or leave the layer out by `ignore`");
    }
    const BlockType* block = type(scheme.weight_bits <= 4 ? "Q4_0" : scheme.weight_bits == 5 ? "Q5_0" : "Q8_0");
    tensors_.push_back({written, block, shape, [weight, block, source](const Sink& sink) {
                          return write_codes(sink, *weight, *block, source);
                        }});
    return {};
  }

  void add_factors() {
    const std::vector<float> factors = source_.frequency_factors;
    tensors_.push_back(
        {"rope_freqs.weight", type("F32"), {static_cast<std::int64_t>(factors.size())}, [factors](const Sink& sink) {
           return sink(std::as_bytes(std::span(factors)));
         }});
  }

  // Whatever else computes with float constants is no part of the decoder llama.cpp builds. Tables of angles are: the
  // configuration says them.
  Status check_rest() const {
    for (NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (known_.contains(id) || node.op_type == "RotaryEmbedding") continue;
      if (source_.architecture->scales_embedding && node.name == "model.embed_scaled") continue;
      for (ValueId input : node.inputs) {
        if (!input.is_valid() || !graph_.value(input).is_constant() || graph_.value(input).dtype != DType::f32)
          continue;
        return input_error("gguf: node \"" + printable(graph_.address(id)) + "\" (" + printable(node.op_type) +
                           "): expected only what a decoder of architecture " +
                           std::string(source_.architecture->gguf) +
                           " has, found weights of its own. Choose another format");
      }
    }
    return {};
  }

  // llama.cpp's number for the type that most bytes have.
  std::uint32_t file_type() const {
    std::map<std::string_view, std::uint64_t> bytes;
    for (const TensorToWrite& tensor : tensors_) bytes[tensor.type->name] += tensor.bytes();
    const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
    static const std::map<std::string_view, std::uint32_t> kNumbers{
        {"F32", 0}, {"F16", 1}, {"Q4_0", 2}, {"Q5_0", 8}, {"Q8_0", 7}};
    return kNumbers.at(most->first);
  }

  const Graph& graph_;
  GgufSource source_;
  std::map<std::string, NodeId> nodes_;
  std::set<NodeId> known_;
  std::vector<TensorToWrite> tensors_;
};

}  // namespace

Status write_gguf(const Graph& graph, const std::string& model, const std::string& path) {
  CTK_TRY(GgufSource source, gguf_source(model));
  GgufBuilder builder(graph, std::move(source));
  CTK_CHECK(builder.build());
  return graph::gguf::write_file(builder.metadata(), builder.tensors(), path);
}

Result<std::string> gguf_of(const Graph& graph, const std::string& model) {
  CTK_TRY(GgufSource source, gguf_source(model));
  GgufBuilder builder(graph, std::move(source));
  CTK_CHECK(builder.build());
  std::string bytes;
  bytes.reserve(graph::gguf::written_bytes(builder.metadata(), builder.tensors()));
  CTK_CHECK(graph::gguf::write(builder.metadata(), builder.tensors(), [&](std::span<const std::byte> piece) -> Status {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  }));
  return bytes;
}

std::vector<std::string> gguf_notes(const Graph& graph) {
  std::string names;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op_type != "Gemm" || !are_ragged(graph.value(node.inputs[1]))) continue;
    names += (names.empty() ? "" : ", ") + node.name;
  }
  if (names.empty()) return {};
  return {"gguf: rows that are no multiple of 32 are written as float32, with the same numbers: " + names};
}

}  // namespace ctk::exporter
