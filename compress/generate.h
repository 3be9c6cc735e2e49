// Text from a language model: a checkpoint folder or a bundle made from one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "data/text/tokenizer.h"
#include "runtime/generate.h"
#include "runtime/sample.h"

namespace ctk::pipeline {

struct GenerateRequest {
  std::string model;
  std::string tokenizer;  // a tokenizer.json or its folder; empty: beside the model
  std::string prompt;
  bool adds_special_tokens = true;    // those of the tokenizer around the prompt; an empty prompt becomes BOS
  bool is_chat = false;               // the prompt is a message, put into the model's chat template
  std::string system, chat_template;  // with is_chat: what stands before it; a file with another template
  bool adds_bos = false;              // BOS in front, where the tokenizer does not put it
  std::size_t most_tokens = 128;      // to generate; fewer where the model ends the text
  bool stops_at_end = true;           // at the tokenizer's end-of-text token
  int activation_bits = 0;            // of layers with coded weights in groups: 8 or 16; 0: as their schemes say
  runtime::GenerateOptions decoder;
  runtime::Sampling sampling;
};

struct GenerateResult {
  std::string text;  // without the prompt
  std::size_t prompt_tokens = 0, new_tokens = 0;
  bool ended = false;                                          // by the end-of-text token
  double load_seconds = 0, first_token_seconds = 0;            // first token: from the prompt's ids on, model loaded
  double prompt_tokens_per_second = 0, tokens_per_second = 0;  // the latter of what follows the first token
  std::size_t context = 0, cache_bytes = 0, packed_bytes = 0;
};

// The decoder's graph, passes run, and the model's tokenizer.
struct LanguageModel {
  graph::Graph graph;
  std::shared_ptr<const data::Tokenizer> tokenizer;
};
// Errors: input (missing, damaged, no tokenizer, vocabularies that do not fit).
Result<LanguageModel> load_language_model(const std::string& model, const std::string& tokenizer);

// Sets the width of activations of every layer whose weights are coded in groups; answers how many there are.
std::size_t set_activation_bits(graph::Graph& graph, int bits);

// `on_text` gets the new text as it comes, whole characters at a time.
// Errors: input, config (a number out of range, a prompt longer than the context), interrupted.
Result<GenerateResult> generate(const GenerateRequest& request,
                                const std::function<void(std::string_view)>& on_text = {});

}  // namespace ctk::pipeline
