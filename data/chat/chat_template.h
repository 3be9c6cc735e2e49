// Chat templates: the Jinja text in a checkpoint's tokenizer_config.json that turns messages into the prompt its model
// was trained on. Rendered as transformers does (trim_blocks and lstrip_blocks on). What templates of checkpoints use
// is there: loops, branches, set, namespaces, slices, filters, tests, methods of texts and maps. Macros and imports are
// refused by name. `strftime_now` is not defined: a prompt is the same on any day.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "data/chat/syntax.h"

namespace ctk::data::chat {

struct Message {
  std::string role, content;  // "system", "user", "assistant"
};

class ChatTemplate {
 public:
  // Errors: input (line, expected, found).
  static Result<ChatTemplate> parse(std::string_view source);

  // `tokens`: bos_token, eos_token and their like, where the tokenizer has them. add_generation_prompt: ends where the
  // assistant's answer begins.
  // Errors: input (what the template itself raises, with its words; values of the wrong kind; more than 10^7 steps or
  // 64 MB of text).
  Result<std::string> render(const std::vector<Message>& messages, const std::map<std::string, std::string>& tokens,
                             bool add_generation_prompt) const;

 private:
  Block block_;
};

}  // namespace ctk::data::chat
