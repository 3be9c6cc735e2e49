#include "graph/hf/decoder.h"

#include <algorithm>

namespace ctk::graph::hf {
namespace {

constexpr std::int64_t kMostRows = 8192;  // of a rotary table: 2 MB of f32 at head size 64

class DecoderBuilder {
 public:
  DecoderBuilder(const DecoderConfig& config, const TensorLookup& lookup, const CodeLookup& codes)
      : c_(config), maker_(graph_, lookup, codes) {}

  Result<Graph> build() {
    graph_.name = c_.architecture;
    graph_.ir_version = 11;
    const TokenInput tokens = add_token_input(graph_, maker_);
    positions_ = tokens.positions;
    axis_ = *graph_.find_value("axis_0");
    CTK_CHECK(add_tables());
    CTK_TRY(const ValueId embedding, maker_.matrix("model.embed_tokens.weight", {c_.vocab_size, c_.hidden_size}));
    ValueId x = maker_.node("model.embed_tokens", "Gather", {embedding, tokens.ids});
    if (c_.embedding_scale != 1.0) {
      const ValueId scale =
          maker_.constant("model.embed_scale", Tensor::scalar(static_cast<float>(c_.embedding_scale)));
      x = maker_.node("model.embed_scaled", "Mul", {x, scale});
    }
    for (std::int64_t i = 0; i < c_.layers; ++i) {
      CTK_TRY(x, add_layer("model.layers." + std::to_string(i), x));
    }
    CTK_TRY(x, norm("model.norm", x, c_.hidden_size));
    if (c_.ties_embeddings) {
      x = maker_.node("lm_head", "Gemm", {x, embedding}, {{"transB", std::int64_t{1}}});
    } else {
      CTK_TRY(x, maker_.linear("lm_head", x, c_.vocab_size, c_.hidden_size, false));
    }
    Node last;
    last.name = "logits";
    last.op_type = "Unsqueeze";
    last.inputs = {x, axis_};
    last.outputs = {
        graph_.add_value("logits", DType::f32, DeclaredShape{{1, ""}, {-1, "sequence"}, {c_.vocab_size, ""}})};
    graph_.add_output(last.outputs[0]);
    graph_.add_node(std::move(last));
    add_notes();
    CTK_CHECK(verify(graph_));
    return std::move(graph_);
  }

 private:
  Status add_tables() {
    CTK_TRY(RopeTables tables, rope_tables(c_.rope, c_.head_dim, position_rows(c_)));
    cosines_ = maker_.constant("model.rotary_emb.cos", std::move(tables.cosines));
    sines_ = maker_.constant("model.rotary_emb.sin", std::move(tables.sines));
    return {};
  }

  Result<ValueId> norm(const std::string& name, ValueId x, std::int64_t size) {
    CTK_TRY(const ValueId scale, maker_.weight(name + ".weight", {size}, c_.is_norm_plus_one));
    return maker_.node(name, "RMSNormalization", {x, scale}, {{"epsilon", static_cast<float>(c_.norm_epsilon)}});
  }

  // q, k or v as [1, T, heads * head_dim]; `normalizes`: each head by its norm first.
  Result<ValueId> project(const std::string& attention, const std::string& which, ValueId x, std::int64_t heads,
                          bool normalizes) {
    const std::int64_t width = heads * c_.head_dim;
    CTK_TRY(ValueId y, maker_.linear(attention + "." + which + "_proj", x, width, c_.hidden_size, c_.has_qkv_bias));
    if (!normalizes) return maker_.node(attention + "." + which, "Unsqueeze", {y, axis_});
    y = maker_.node(attention + "." + which + "_heads", "Reshape",
                    {y, ints(attention + "." + which + "_heads.shape", {0, heads, c_.head_dim})});
    CTK_TRY(y, norm(attention + "." + which + "_norm", y, c_.head_dim));
    return maker_.node(attention + "." + which, "Reshape",
                       {y, ints(attention + "." + which + ".shape", {1, -1, width})});
  }

  ValueId rotate(const std::string& name, ValueId x, std::int64_t heads) {
    return maker_.node(name, "RotaryEmbedding", {x, cosines_, sines_, positions_}, {{"num_heads", heads}});
  }

  Result<ValueId> add_attention(const std::string& attention, ValueId x) {
    CTK_TRY(ValueId q, project(attention, "q", x, c_.heads, c_.has_qk_norm));
    CTK_TRY(ValueId k, project(attention, "k", x, c_.kv_heads, c_.has_qk_norm));
    CTK_TRY(const ValueId v, project(attention, "v", x, c_.kv_heads, false));
    q = rotate(attention + ".q_rotary", q, c_.heads);
    k = rotate(attention + ".k_rotary", k, c_.kv_heads);
    ValueId y = maker_.node(attention, "Attention", {q, k, v},
                            {{"is_causal", std::int64_t{1}}, {"q_num_heads", c_.heads}, {"kv_num_heads", c_.kv_heads}});
    y = maker_.node(attention + ".rows", "Squeeze", {y, axis_});
    return maker_.linear(attention + ".o_proj", y, c_.hidden_size, c_.heads * c_.head_dim, c_.has_output_bias);
  }

  ValueId activate(const std::string& name, ValueId x) {
    if (c_.activation == Activation::silu) {
      const ValueId gate = maker_.node(name + "_sigmoid", "Sigmoid", {x});
      return maker_.node(name, "Mul", {x, gate});
    }
    const std::string form = c_.activation == Activation::gelu ? "none" : "tanh";
    return maker_.node(name, "Gelu", {x}, {{"approximate", form}});
  }

  Result<ValueId> add_layer(const std::string& layer, ValueId x) {
    CTK_TRY(ValueId h, norm(layer + ".input_layernorm", x, c_.hidden_size));
    CTK_TRY(h, add_attention(layer + ".self_attn", h));
    x = maker_.node(layer + ".attention_residual", "Add", {x, h});
    CTK_TRY(h, norm(layer + ".post_attention_layernorm", x, c_.hidden_size));
    const std::string mlp = layer + ".mlp";
    CTK_TRY(ValueId gate, maker_.linear(mlp + ".gate_proj", h, c_.intermediate_size, c_.hidden_size, c_.has_mlp_bias));
    CTK_TRY(const ValueId up,
            maker_.linear(mlp + ".up_proj", h, c_.intermediate_size, c_.hidden_size, c_.has_mlp_bias));
    gate = maker_.node(mlp + ".gated", "Mul", {activate(mlp + ".act_fn", gate), up});
    CTK_TRY(h, maker_.linear(mlp + ".down_proj", gate, c_.hidden_size, c_.intermediate_size, c_.has_mlp_bias));
    return maker_.node(layer + ".mlp_residual", "Add", {x, h});
  }

  ValueId ints(const std::string& name, std::vector<std::int64_t> values) {
    return maker_.constant(name, Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
  }

  void add_notes() {
    const std::int64_t rows = position_rows(c_);
    if (rows < c_.max_positions) {
      const bool by_window = c_.sliding_window > 0 && rows == c_.sliding_window;
      graph_.reader_notes.push_back("sequences of up to " + std::to_string(rows) + " tokens, of " +
                                    std::to_string(c_.max_positions) + " the model has positions for: " +
                                    (by_window ? "past that its attention slides" : "the rotary tables are cut there"));
    }
    maker_.note_narrow();
    if (c_.ties_embeddings) graph_.reader_notes.push_back("the head is the embedding (tied)");
  }

  const DecoderConfig& c_;
  Graph graph_;
  Maker maker_;
  ValueId positions_, axis_, cosines_, sines_;
};

}  // namespace

std::int64_t position_rows(const DecoderConfig& config) {
  const std::int64_t window = config.sliding_window > 0 ? config.sliding_window : config.max_positions;
  return std::min({kMostRows, config.max_positions, window});
}

Status check_decoder(const DecoderConfig& c) {
  constexpr std::int64_t kWide = std::int64_t{1} << 24, kDeep = 1 << 12;
  const Bound bounds[] = {
      {"hidden_size", c.hidden_size, kWide},   {"intermediate_size", c.intermediate_size, kWide},
      {"vocab_size", c.vocab_size, kWide},     {"num_hidden_layers", c.layers, kDeep},
      {"num_attention_heads", c.heads, kDeep}, {"num_key_value_heads", c.kv_heads, kDeep},
      {"head_dim", c.head_dim, kDeep},         {"max_position_embeddings", c.max_positions, std::int64_t{1} << 32}};
  CTK_CHECK(check_bounds(bounds));
  CTK_CHECK(check_epsilon(c.norm_epsilon));
  if (c.heads % c.kv_heads != 0) {
    return input_error("num_key_value_heads: expected a divisor of num_attention_heads " + std::to_string(c.heads) +
                       ", found " + std::to_string(c.kv_heads) + ". Correct the configuration");
  }
  if (c.head_dim % 2 != 0) {
    return input_error("head_dim: expected an even number, found " + std::to_string(c.head_dim) +
                       ". Rotary embeddings turn pairs; correct the configuration");
  }
  return {};
}

Result<Graph> build_decoder(const DecoderConfig& config, const TensorLookup& lookup, const CodeLookup& codes) {
  CTK_CHECK(check_decoder(config));
  return DecoderBuilder(config, lookup, codes).build();
}

}  // namespace ctk::graph::hf
