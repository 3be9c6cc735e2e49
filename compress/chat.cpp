#include "compress/chat.h"

#include <filesystem>
#include <map>

#include "compress/model_tokenizer.h"
#include "core/file.h"
#include "core/printable.h"
#include "data/text/json_node.h"
#include "graph/gguf/container.h"

namespace ctk::pipeline {
namespace {

namespace fs = std::filesystem;

struct Found {
  std::string where, text;  // text empty: no template
};

// One template, or several by name.
Result<std::string> default_of(const data::JsonNode& node) {
  if (!node.is_array()) return node.text();
  std::string names;
  for (std::size_t i = 0; i < node.size(); ++i) {
    CTK_TRY(const std::string name, node.at(i).child("name").text());
    if (name == "default") return node.at(i).child("template").text();
    names += (names.empty() ? "" : ", ") + name;
  }
  return node.expected("a template named \"default\" among " + printable(names));
}

Status read_folder(const fs::path& folder, Found& found) {
  std::error_code ignored;
  const fs::path settings_path = folder / "tokenizer_config.json";
  if (fs::is_regular_file(settings_path, ignored)) {
    CTK_TRY(const std::string json, read_text(settings_path.string()));
    CTK_TRY(const data::JsonNode settings, data::JsonNode::parse(json, settings_path.string()));
    if (!settings.child("chat_template").is_absent()) {
      CTK_TRY(found.text, default_of(settings.child("chat_template")));
      found.where = settings_path.string();
    }
  }
  const fs::path alone = folder / "chat_template.jinja";
  if (fs::is_regular_file(alone, ignored)) {
    CTK_TRY(found.text, read_text(alone.string()));
    found.where = alone.string();
  }
  return {};
}

Status read_gguf(const std::string& path, Found& found) {
  CTK_TRY(const auto file, graph::gguf::File::open(path));
  if (file.find("tokenizer.chat_template") == nullptr) return {};
  CTK_TRY(const std::string_view text, file.text("tokenizer.chat_template"));
  found.text = text;
  found.where = path;
  return {};
}

}  // namespace

Result<std::string> chat_prompt(const ChatRequest& request, const data::Tokenizer& tokenizer) {
  Found found;
  std::error_code ignored;
  const bool is_folder = fs::is_directory(request.model, ignored);
  CTK_CHECK(read_folder(is_folder ? fs::path(request.model) : fs::path(request.model).parent_path(), found));
  if (is_gguf_file(request.model)) CTK_CHECK(read_gguf(request.model, found));
  if (!request.template_path.empty()) {
    CTK_TRY(found.text, read_text(request.template_path));
    found.where = request.template_path;
  }
  if (found.text.empty()) {
    return input_error(printable(request.model) +
                       ": expected a chat template in tokenizer_config.json, chat_template.jinja or the file's "
                       "tokenizer.chat_template, found none. Name one with --chat-template, or leave out --chat");
  }
  const std::pair<const char*, std::optional<std::int64_t>> ids[] = {{"bos_token", tokenizer.bos_id()},
                                                                     {"eos_token", tokenizer.eos_id()},
                                                                     {"unk_token", tokenizer.unknown_id()},
                                                                     {"pad_token", tokenizer.padding_id()}};
  std::map<std::string, std::string> tokens;
  for (const auto& [name, id] : ids) {
    if (!id) continue;
    if (auto token = tokenizer.token_of(*id)) tokens[name] = std::move(*token);
  }
  auto chat = data::chat::ChatTemplate::parse(found.text);
  if (!chat) return std::move(chat).error().with_context(printable(found.where));
  auto prompt = chat->render(request.messages, tokens, true);
  if (!prompt) return std::move(prompt).error().with_context(printable(found.where));
  return prompt;
}

}  // namespace ctk::pipeline
