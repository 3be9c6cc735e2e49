// The keys of a GGUF file and what they are made from. Internal to export/gguf.
#pragma once

#include <string>
#include <vector>

#include "graph/gguf/names.h"
#include "graph/gguf/write.h"
#include "graph/hf/decoder.h"

namespace ctk::exporter {

struct GgufSource {
  graph::hf::DecoderConfig config;
  const graph::gguf::Architecture* architecture = nullptr;
  graph::gguf::Metadata metadata;        // without general.file_type
  std::vector<float> frequency_factors;  // [head_dim / 2], of the tensor rope_freqs.weight; empty: none
};

// From a checkpoint folder or a GGUF file. Errors: input (path, key, expected, found).
Result<GgufSource> gguf_source(const std::string& model);

// tokenizer.json, tokenizer_config.json and the ids of config.json -> tokenizer.* keys, padded to `rows` tokens.
// Errors: input (a kind, normalizer or pre-tokenizer that llama.cpp has no name for; ids past `rows` or twice).
Status add_tokenizer(const std::string& folder, std::int64_t rows, graph::gguf::Metadata& metadata);

}  // namespace ctk::exporter
