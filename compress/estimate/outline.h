// What a model reads and computes, from its shapes alone: a checkpoint folder needs no weights, not even the files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "graph/layer.h"

namespace ctk::pipeline::estimate {

// A constant weight of a convolution or product.
struct Matrix {
  graph::Layer layer;
  std::size_t count = 0;    // of weights; 0 where another layer with the same weight has them
  double stored_bytes = 0;  // in the model's own file
  double macs = 0;          // of one run: a sample, or a token of a decoder
};

struct Outline {
  std::string name;             // "LlamaForCausalLM"
  std::int64_t parameters = 0;  // floats and codes of all constants
  std::vector<Matrix> matrices;
  // Tables that are looked up row by row and are no layer's weight besides.
  double table_parameters = 0, table_bytes = 0, row_bytes = 0;
  double other_bytes = 0;  // norms, biases

  // Of decoders only.
  bool is_decoder = false;
  double cache_numbers = 0;       // keys and values of one token, all blocks
  double attention_macs = 0;      // of one token and one position it looks at, all blocks
  double head_macs = 0;           // computed for the last token of a prompt only
  std::int64_t most_context = 0;  // positions of the rotary tables
};

// Errors: input (missing, damaged, an architecture we do not know).
Result<Outline> outline(const std::string& model);

}  // namespace ctk::pipeline::estimate
