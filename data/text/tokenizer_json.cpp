// tokenizer.json and the files beside it.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/file.h"
#include "core/hash.h"
#include "core/printable.h"
#include "data/text/sentence_piece.h"
#include "data/text/tokenizer_body.h"

namespace ctk::data {
namespace {

// What stands beside a token's id.
Status read_added_token(const JsonNode& node, AddedToken& token) {
  CTK_TRY(token.content, node.child("content").text());
  CTK_TRY(token.strips_left, node.flag("lstrip", false));
  CTK_TRY(token.strips_right, node.flag("rstrip", false));
  CTK_TRY(token.single_word, node.flag("single_word", false));
  CTK_TRY(token.is_special, node.flag("special", false));
  CTK_TRY(token.is_normalized, node.flag("normalized", !token.is_special));
  return {};
}

Status read_added_tokens(const JsonNode& list, Tokenizer::Body& body) {
  if (list.is_absent()) return {};
  if (!list.is_array()) return list.expected("an array of tokens");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonNode node = list.at(i);
    AddedToken token;
    CTK_TRY(token.id, node.child("id").integer());
    CTK_CHECK(read_added_token(node, token));
    CTK_CHECK(body.add(std::move(token), node.where()));
  }
  return {};
}

// ["[SEP]", 102]
Status append_pair(const JsonNode& pair, std::vector<std::int64_t>& ids) {
  if (!pair.is_array() || pair.size() != 2) return pair.expected("a token and its id");
  CTK_TRY(const std::int64_t id, pair.at(1).integer());
  ids.push_back(id);
  return {};
}

Status append_template(const JsonNode& node, std::vector<std::int64_t>& before, std::vector<std::int64_t>& after) {
  const JsonNode single = node.child("single");
  if (!single.is_array()) return single.expected("an array");
  int sequences = 0;
  for (std::size_t i = 0; i < single.size(); ++i) {
    const JsonNode item = single.at(i);
    const JsonNode special = item.child("SpecialToken");
    if (special.is_absent()) {
      if (item.child("Sequence").is_absent()) return item.expected("a SpecialToken or a Sequence");
      ++sequences;
      continue;
    }
    CTK_TRY(const std::string name, special.child("id").text());
    const JsonNode ids = node.child("special_tokens").child(name).child("ids");
    if (!ids.is_array()) return ids.expected("an array of ids");
    for (std::size_t k = 0; k < ids.size(); ++k) {
      CTK_TRY(const std::int64_t id, ids.at(k).integer());
      (sequences == 0 ? before : after).push_back(id);
    }
  }
  if (sequences != 1) return single.expected("one Sequence");
  return {};
}

Status read_post_processor(const JsonNode& node, Tokenizer::Body& body) {
  if (node.is_absent()) return {};
  if (node.depth() > kMaxDepth)
    return node.expected("components nested at most " + std::to_string(kMaxDepth) + " deep");
  CTK_TRY(const std::string type, node.text("type", ""));
  std::vector<std::int64_t> before, after;
  if (type == "Sequence") {
    const JsonNode list = node.child("processors");
    if (!list.is_array()) return list.expected("an array of post-processors");
    for (std::size_t i = 0; i < list.size(); ++i) CTK_CHECK(read_post_processor(list.at(i), body));
  } else if (type == "TemplateProcessing") {
    CTK_CHECK(append_template(node, before, after));
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    CTK_CHECK(append_pair(node.child("cls"), before));
    CTK_CHECK(append_pair(node.child("sep"), after));
  } else if (type != "ByteLevel") {  // ByteLevel moves offsets only
    return input_error(node.where() +
                       ": expected a post-processor of type TemplateProcessing, BertProcessing, RobertaProcessing, "
                       "ByteLevel, Sequence; found \"" +
                       printable(type) + "\". Take a tokenizer that is built of these.");
  }
  for (const auto* ids : {&before, &after})
    for (std::int64_t id : *ids)
      if (body.token(id) == nullptr)
        return input_error(node.where() + ": expected ids of tokens, found " + std::to_string(id) + ". Mend the file.");
  body.prefix.insert(body.prefix.begin(), before.begin(), before.end());
  body.suffix.insert(body.suffix.end(), after.begin(), after.end());
  return {};
}

// "bos_token": "<s>" or {"content": "<s>"}
Status find_named(const JsonNode& config, const char* key, const Tokenizer::Body& body,
                  std::optional<std::int64_t>& id) {
  JsonNode name = config.child(key);
  if (name.is_object()) name = name.child("content");
  if (name.is_absent()) return {};
  CTK_TRY(const std::string token, name.text());
  const std::int64_t found = body.find(token);
  if (found < 0) return name.expected("a token of the tokenizer");
  id = found;
  return {};
}

// "eos_token_id": 2 or [2, 5], of which the first counts
Status find_numbered(const JsonNode& config, const char* key, const Tokenizer::Body& body,
                     std::optional<std::int64_t>& id) {
  JsonNode number = config.child(key);
  if (number.is_array() && number.size() > 0) number = number.at(0);
  if (number.is_absent()) return {};
  CTK_TRY(const std::int64_t found, number.integer());
  if (body.token(found) == nullptr) return number.expected("the id of a token of the tokenizer");
  id = found;
  return {};
}

// What tokenizer_config.json says goes before config.json.
Status read_configs(const std::filesystem::path& folder, Tokenizer::Body& body) {
  struct Wanted {
    const char* key;
    std::optional<std::int64_t>* id;
  };
  const Wanted wanted[] = {{"bos_token", &body.bos}, {"eos_token", &body.eos}, {"pad_token", &body.padding}};
  for (const char* name : {"tokenizer_config.json", "config.json"}) {
    const std::string path = (folder / name).string();
    if (!std::filesystem::exists(path)) continue;
    CTK_TRY(const MappedFile file, MappedFile::open(path));
    CTK_TRY(const JsonNode config, JsonNode::parse(file.text(), path));
    const bool is_names = std::string_view(name) == "tokenizer_config.json";
    for (const Wanted& want : wanted) {
      if (*want.id) continue;
      if (is_names)
        CTK_CHECK(find_named(config, want.key, body, *want.id));
      else
        CTK_CHECK(find_numbered(config, (std::string(want.key) + "_id").c_str(), body, *want.id));
    }
  }
  return {};
}

void sort_added(Tokenizer::Body& body) {
  std::sort(body.added.begin(), body.added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
}

Result<std::unique_ptr<Tokenizer::Body>> read_body(std::string_view json, const std::string& where) {
  CTK_TRY(const JsonNode root, JsonNode::parse(json, where));
  if (!root.is_object()) return root.expected("an object with a \"model\"");
  auto body = std::make_unique<Tokenizer::Body>();
  body->where = where;
  body->fingerprint = Fingerprint().add(json).hex();
  CTK_TRY(body->normalizers, read_normalizers(root.child("normalizer")));
  CTK_TRY(body->pre_tokenizers, read_pre_tokenizers(root.child("pre_tokenizer")));
  CTK_TRY(body->model, read_token_model(root.child("model")));
  CTK_CHECK(read_added_tokens(root.child("added_tokens"), *body));
  CTK_CHECK(read_post_processor(root.child("post_processor"), *body));
  CTK_TRY(body->decoders, read_decoders(root.child("decoder")));
  sort_added(*body);
  return body;
}

// Beside a tokenizer.model, tokenizer_config.json says which tokens came later and what goes around a text.
Status read_additions(const std::filesystem::path& folder, Tokenizer::Body& body) {
  const std::string path = (folder / "tokenizer_config.json").string();
  if (!std::filesystem::exists(path)) return read_configs(folder, body);
  CTK_TRY(const MappedFile file, MappedFile::open(path));
  CTK_TRY(const JsonNode config, JsonNode::parse(file.text(), path));
  if (const JsonNode added = config.child("added_tokens_decoder"); !added.is_absent())
    CTK_CHECK(added.each([&](const std::string& id, const JsonNode& node) -> Status {
      AddedToken token;
      const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), token.id);
      if (error != std::errc() || end != id.data() + id.size()) return node.expected("an id as key");
      CTK_CHECK(read_added_token(node, token));
      return body.find(token.content) == token.id ? Status() : body.add(std::move(token), node.where());
    }));
  sort_added(body);
  const std::optional<std::int64_t> own[] = {body.bos, body.eos, body.padding};
  body.bos = body.eos = body.padding = std::nullopt;
  CTK_CHECK(read_configs(folder, body));
  if (!body.bos) body.bos = own[0];
  if (!body.eos) body.eos = own[1];
  if (!body.padding) body.padding = own[2];
  CTK_TRY(const bool adds_bos, config.flag("add_bos_token", false));
  CTK_TRY(const bool adds_eos, config.flag("add_eos_token", false));
  if (adds_bos && !body.bos) return config.child("add_bos_token").expected("false, since there is no BOS token");
  if (adds_eos && !body.eos) return config.child("add_eos_token").expected("false, since there is no EOS token");
  if (adds_bos) body.prefix.push_back(*body.bos);
  if (adds_eos) body.suffix.push_back(*body.eos);
  return {};
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> parse_tokenizer(std::string_view json, const std::string& where) {
  CTK_TRY(std::unique_ptr<Tokenizer::Body> body, read_body(json, where));
  return std::shared_ptr<const Tokenizer>(std::make_shared<Tokenizer>(std::move(body)));
}

Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const std::string& path) {
  std::filesystem::path file = path;
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    file /= "tokenizer.json";
    if (!std::filesystem::exists(file, error)) file.replace_filename("tokenizer.model");
    if (!std::filesystem::exists(file, error))
      return input_error(path +
                         ": expected a folder with a tokenizer.json or a tokenizer.model, found neither in it. Name "
                         "the tokenizer file.");
  }
  CTK_TRY(const MappedFile mapped, MappedFile::open(file.string()));
  const bool is_model = file.extension() == ".model" || is_sentence_piece(mapped.text());
  CTK_TRY(std::unique_ptr<Tokenizer::Body> body,
          (is_model ? read_sentence_piece : read_body)(mapped.text(), file.string()));
  CTK_CHECK(is_model ? read_additions(file.parent_path(), *body) : read_configs(file.parent_path(), *body));
  return std::shared_ptr<const Tokenizer>(std::make_shared<Tokenizer>(std::move(body)));
}

}  // namespace ctk::data
