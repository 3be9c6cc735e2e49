#include "graph/hf/encoder.h"

namespace ctk::graph::hf {
namespace {

class EncoderBuilder {
 public:
  EncoderBuilder(const EncoderConfig& config, const TensorLookup& lookup, const CodeLookup& codes)
      : c_(config), maker_(graph_, lookup, codes) {}

  Result<Graph> build() {
    graph_.name = c_.architecture;
    graph_.ir_version = 11;
    const TokenInput tokens = add_token_input(graph_, maker_);
    axis_ = *graph_.find_value("axis_0");
    CTK_TRY(ValueId x, add_embeddings(tokens));
    for (std::int64_t i = 0; i < c_.layers; ++i) {
      CTK_TRY(x, add_layer(c_.prefix + "encoder.layer." + std::to_string(i), x));
    }
    Node last;
    last.name = "last_hidden_state";
    last.op_type = "Unsqueeze";
    last.inputs = {x, axis_};
    last.outputs = {graph_.add_value("last_hidden_state", DType::f32,
                                     DeclaredShape{{1, ""}, {-1, "sequence"}, {c_.hidden_size, ""}})};
    graph_.add_output(last.outputs[0]);
    graph_.add_node(std::move(last));
    graph_.reader_notes.push_back("sequences of up to " + std::to_string(c_.max_positions) + " tokens, all of type 0");
    maker_.note_narrow();
    CTK_CHECK(verify(graph_));
    return std::move(graph_);
  }

 private:
  Result<ValueId> add_embeddings(const TokenInput& tokens) {
    const std::string module = c_.prefix + "embeddings";
    CTK_TRY(const ValueId words, maker_.matrix(module + ".word_embeddings.weight", {c_.vocab_size, c_.hidden_size}));
    CTK_TRY(const ValueId places,
            maker_.weight(module + ".position_embeddings.weight", {c_.max_positions, c_.hidden_size}));
    CTK_TRY(const ValueId types,
            maker_.weight(module + ".token_type_embeddings.weight", {c_.type_vocab_size, c_.hidden_size}));
    const ValueId word = maker_.node(module + ".word_embeddings", "Gather", {words, tokens.ids});
    const ValueId positions = maker_.node("positions", "Squeeze", {tokens.positions, axis_}, {}, DType::i64);
    const ValueId place = maker_.node(module + ".position_embeddings", "Gather", {places, positions});
    const ValueId type = maker_.node(module + ".token_type_embeddings", "Gather", {types, axis_});
    ValueId x = maker_.node(module + ".word_and_type", "Add", {word, type});
    x = maker_.node(module + ".sum", "Add", {x, place});
    return norm(module + ".LayerNorm", x);
  }

  Result<ValueId> norm(const std::string& name, ValueId x) {
    CTK_TRY(const ValueId scale, maker_.weight(name + ".weight", {c_.hidden_size}));
    CTK_TRY(const ValueId bias, maker_.weight(name + ".bias", {c_.hidden_size}));
    return maker_.node(name, "LayerNormalization", {x, scale, bias},
                       {{"epsilon", static_cast<float>(c_.norm_epsilon)}});
  }

  Result<ValueId> project(const std::string& attention, const std::string& which, ValueId x) {
    CTK_TRY(const ValueId y, maker_.linear(attention + "." + which, x, c_.hidden_size, c_.hidden_size, true));
    return maker_.node(attention + "." + which + ".batch", "Unsqueeze", {y, axis_});
  }

  Result<ValueId> add_layer(const std::string& layer, ValueId x) {
    const std::string attention = layer + ".attention.self", merge = layer + ".attention.output";
    CTK_TRY(const ValueId q, project(attention, "query", x));
    CTK_TRY(const ValueId k, project(attention, "key", x));
    CTK_TRY(const ValueId v, project(attention, "value", x));
    ValueId h = maker_.node(attention, "Attention", {q, k, v}, {{"q_num_heads", c_.heads}, {"kv_num_heads", c_.heads}});
    h = maker_.node(attention + ".rows", "Squeeze", {h, axis_});
    CTK_TRY(h, maker_.linear(merge + ".dense", h, c_.hidden_size, c_.hidden_size, true));
    CTK_TRY(x, norm(merge + ".LayerNorm", maker_.node(merge + ".residual", "Add", {h, x})));
    CTK_TRY(h, maker_.linear(layer + ".intermediate.dense", x, c_.intermediate_size, c_.hidden_size, true));
    const std::string form = c_.activation == Activation::gelu_tanh ? "tanh" : "none";
    h = maker_.node(layer + ".intermediate", "Gelu", {h}, {{"approximate", form}});
    CTK_TRY(h, maker_.linear(layer + ".output.dense", h, c_.hidden_size, c_.intermediate_size, true));
    return norm(layer + ".output.LayerNorm", maker_.node(layer + ".output.residual", "Add", {h, x}));
  }

  const EncoderConfig& c_;
  Graph graph_;
  Maker maker_;
  ValueId axis_;
};

}  // namespace

Status check_encoder(const EncoderConfig& c) {
  constexpr std::int64_t kWide = std::int64_t{1} << 24, kDeep = 1 << 12;
  const Bound bounds[] = {{"hidden_size", c.hidden_size, kWide},
                          {"intermediate_size", c.intermediate_size, kWide},
                          {"vocab_size", c.vocab_size, kWide},
                          {"type_vocab_size", c.type_vocab_size, kWide},
                          {"num_hidden_layers", c.layers, kDeep},
                          {"num_attention_heads", c.heads, kDeep},
                          {"max_position_embeddings", c.max_positions, kWide}};
  CTK_CHECK(check_bounds(bounds));
  CTK_CHECK(check_epsilon(c.norm_epsilon));
  if (c.hidden_size % c.heads == 0) return {};
  return input_error("num_attention_heads: expected a divisor of hidden_size " + std::to_string(c.hidden_size) +
                     ", found " + std::to_string(c.heads) + ". Correct the configuration");
}

Result<Graph> build_encoder(const EncoderConfig& config, const TensorLookup& lookup, const CodeLookup& codes) {
  CTK_CHECK(check_encoder(config));
  return EncoderBuilder(config, lookup, codes).build();
}

}  // namespace ctk::graph::hf
