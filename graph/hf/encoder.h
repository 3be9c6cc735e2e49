// Encoders of BERT's type as one graph: input_ids i64 [1, sequence] -> last_hidden_state f32 [1, sequence, hidden].
// One sequence without padding, so there is no mask; every token is of type 0.
#pragma once

#include "graph/hf/decoder.h"

namespace ctk::graph::hf {

struct EncoderConfig {
  std::string architecture;  // "BertModel"
  std::string prefix;        // of the tensors' names: "" or "bert."
  std::int64_t hidden_size = 0, intermediate_size = 0, vocab_size = 0, type_vocab_size = 0;
  std::int64_t layers = 0, heads = 0, max_positions = 0;
  double norm_epsilon = 1e-12;
  Activation activation = Activation::gelu;
};

// Errors: input (field, expected, found).
Status check_encoder(const EncoderConfig& config);

// Tensors by Hugging Face's names of BertModel behind `prefix`; the pooler is not part of it.
// Errors: those of check_encoder() and `lookup`.
Result<Graph> build_encoder(const EncoderConfig& config, const TensorLookup& lookup, const CodeLookup& codes = {});

}  // namespace ctk::graph::hf
