#include "compress/model_tokenizer.h"

#include <filesystem>

#include "core/file.h"
#include "core/printable.h"
#include "graph/gguf/container.h"

namespace ctk::pipeline {
namespace {

using graph::gguf::File;

// Ids and switches that a file may leave out.
Status read_marks(const File& file, data::TokenizerParts& parts) {
  const auto id = [&](const char* key, std::optional<std::int64_t>& into) -> Status {
    if (file.find(key) == nullptr) return {};
    CTK_TRY(const std::uint64_t value, file.integer(key));
    into = static_cast<std::int64_t>(value);
    return {};
  };
  const auto truth = [&](const char* key, bool& into) -> Status {
    if (file.find(key) == nullptr) return {};
    CTK_TRY(into, file.truth(key));
    return {};
  };
  CTK_CHECK(id("tokenizer.ggml.bos_token_id", parts.bos));
  CTK_CHECK(id("tokenizer.ggml.eos_token_id", parts.eos));
  CTK_CHECK(id("tokenizer.ggml.unknown_token_id", parts.unknown));
  CTK_CHECK(id("tokenizer.ggml.padding_token_id", parts.padding));
  CTK_CHECK(truth("tokenizer.ggml.add_bos_token", parts.adds_bos));
  CTK_CHECK(truth("tokenizer.ggml.add_eos_token", parts.adds_eos));
  return truth("tokenizer.ggml.add_space_prefix", parts.adds_space);
}

Result<data::TokenizerParts> read_parts(const File& file, const std::string& path) {
  data::TokenizerParts parts;
  parts.where = path;
  CTK_TRY(parts.kind, file.text("tokenizer.ggml.model"));
  if (file.find("tokenizer.ggml.pre") != nullptr) {
    CTK_TRY(parts.pre, file.text("tokenizer.ggml.pre"));
  }
  CTK_TRY(const auto tokens, file.texts("tokenizer.ggml.tokens"));
  parts.tokens.assign(tokens.begin(), tokens.end());
  if (file.find("tokenizer.ggml.scores") != nullptr) {
    CTK_TRY(parts.scores, file.reals("tokenizer.ggml.scores"));
  }
  if (file.find("tokenizer.ggml.token_type") != nullptr) {
    CTK_TRY(const auto types, file.integers("tokenizer.ggml.token_type"));
    for (const std::int64_t type : types) parts.types.push_back(static_cast<std::int32_t>(type));
  }
  if (file.find("tokenizer.ggml.merges") != nullptr) {
    CTK_TRY(const auto merges, file.texts("tokenizer.ggml.merges"));
    parts.merges.assign(merges.begin(), merges.end());
  }
  CTK_CHECK(read_marks(file, parts));
  return parts;
}

}  // namespace

bool is_gguf_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const auto file = MappedFile::open(path);
  return file && graph::gguf::is_gguf(file->bytes());
}

Result<std::shared_ptr<const data::Tokenizer>> open_model_tokenizer(const std::string& path) {
  if (!is_gguf_file(path)) return data::open_tokenizer(path);
  CTK_TRY(const File file, File::open(path));
  if (file.find("tokenizer.ggml.model") == nullptr) {
    return input_error(printable(path) +
                       ": expected a vocabulary (key tokenizer.ggml.model), found none in the file. Name a tokenizer");
  }
  auto parts = read_parts(file, path);
  if (!parts) return std::move(parts).error().with_context(printable(path));
  return data::make_tokenizer(*parts);
}

Result<data::SourceSpec> with_tokenizer(const data::SourceSpec& spec) {
  data::SourceSpec ready = spec;
  if (!ready.text || ready.text->tokenizer || !is_gguf_file(ready.text->tokenizer_path)) return ready;
  CTK_TRY(ready.text->tokenizer, open_model_tokenizer(ready.text->tokenizer_path));
  return ready;
}

}  // namespace ctk::pipeline
