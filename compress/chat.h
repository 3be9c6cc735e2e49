// A message as the prompt its model was trained on: the checkpoint's own chat template, filled in.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "data/chat/chat_template.h"
#include "data/text/tokenizer.h"

namespace ctk::pipeline {

struct ChatRequest {
  std::string model;          // a checkpoint folder, a bundle beside tokenizer_config.json, or a .gguf file
  std::string template_path;  // a file that holds the template; empty: the model's own
  std::vector<data::chat::Message> messages;
};

// The template is looked for in `template_path`, chat_template.jinja, tokenizer_config.json (chat_template, the one
// named "default" where there are several) and a GGUF file's tokenizer.chat_template. Ends where the answer begins.
// Errors: input (no template; a damaged one; messages it refuses).
Result<std::string> chat_prompt(const ChatRequest& request, const data::Tokenizer& tokenizer);

}  // namespace ctk::pipeline
