#include "data/text/token_source.h"

#include <algorithm>
#include <filesystem>

#include "core/file.h"
#include "core/hash.h"

namespace ctk::data {

Result<std::shared_ptr<const TokenSource>> TokenSource::open(const std::string& path, const TextSpec& spec) {
  if (spec.context < 2)
    return config_error(path + ": context: expected at least 2 tokens, found " + std::to_string(spec.context) +
                        ". Set context to the tokens of a sample.");
  std::shared_ptr<TokenSource> source(new TokenSource);
  source->path_ = path;
  source->name_ = std::filesystem::path(path).filename().string();
  source->spec_ = spec;
  source->tokenizer_ = spec.tokenizer;
  if (!source->tokenizer_) {
    if (spec.tokenizer_path.empty())
      return config_error(path + ": tokenizer: expected one, found none: the model brings none. Add tokenizer: PATH.");
    CTK_TRY(source->tokenizer_, open_tokenizer(spec.tokenizer_path));
  }
  if (spec.bos && !source->tokenizer_->bos_id())
    return input_error(path + ": bos: expected a tokenizer that names its BOS token, found none in " +
                       source->tokenizer_->where() +
                       " nor beside it. Add bos_token to its tokenizer_config.json, or leave bos out.");
  CTK_TRY(const MappedFile file, MappedFile::open(path));
  if (file.text().empty())
    return input_error(path + ": expected text, found an empty file. Give a file that has some.");
  if (const std::size_t zero = file.text().find('\0'); zero != std::string_view::npos)
    return input_error(path + ": expected text in UTF-8, found a zero byte at byte " + std::to_string(zero) +
                       ": it is binary, or UTF-16. Give a text file.");
  CTK_CHECK(spec.lines ? source->cut_lines(file.text()) : source->cut_windows(file.text()));
  return std::shared_ptr<const TokenSource>(std::move(source));
}

void TokenSource::append(std::span<const std::int64_t> ids, std::size_t place) {
  const std::size_t begin = ids_.size();
  if (spec_.bos) ids_.push_back(*tokenizer_->bos_id());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  samples_.push_back({begin, ids_.size(), place});
}

Status TokenSource::cut_windows(std::string_view text) {
  auto encoded = tokenizer_->encode(text);
  if (!encoded) return std::move(encoded).error().with_context(path_);
  const std::span<const std::int64_t> stream = *encoded;
  total_ = stream.size();
  const std::size_t length = static_cast<std::size_t>(spec_.context) - (spec_.bos ? 1 : 0);
  if (total_ < length)
    return input_error(path_ + ": context: expected a text of at least " + std::to_string(length) +
                       " tokens for one window of " + std::to_string(spec_.context) + ", found " +
                       std::to_string(total_) + " tokens (" + std::to_string(text.size()) +
                       " bytes). Give a longer text or a smaller context.");
  ids_.reserve(total_ + total_ / length);
  for (std::size_t at = 0; at + length <= total_; at += length) append(stream.subspan(at, length), at);
  return {};
}

Status TokenSource::cut_lines(std::string_view text) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, newline - at);
    at = newline + 1;
    ++number;
    if (line.ends_with('\r') && newline < text.size()) line.remove_suffix(1);
    if (line.empty()) continue;
    auto ids = tokenizer_->encode(line);
    if (!ids) return std::move(ids).error().with_context(path_ + " line " + std::to_string(number));
    total_ += ids->size();
    if (ids->size() + (spec_.bos ? 1 : 0) < 2)
      ++too_short_;
    else
      append(*ids, number);
  }
  if (samples_.empty())
    return input_error(path_ + ": lines: expected lines of at least two tokens, found none among " +
                       std::to_string(number) + " (" + std::to_string(text.size()) +
                       " bytes). Give a text that has some, or leave lines out.");
  return {};
}

std::span<const std::int64_t> TokenSource::ids(std::size_t index) const {
  const Sample& sample = samples_[index];
  const std::size_t length = std::min(sample.end - sample.begin, static_cast<std::size_t>(spec_.context));
  return std::span(ids_).subspan(sample.begin, length);
}

std::uint64_t TokenSource::hash(std::size_t index) const {
  const Sample& sample = samples_[index];
  const std::size_t begin = sample.begin + (spec_.bos ? 1 : 0);
  return hash64(std::as_bytes(std::span(ids_).subspan(begin, sample.end - begin)));
}

std::string TokenSource::where(std::size_t index) const {
  const Sample& sample = samples_[index];
  if (spec_.lines) return name_ + " line " + std::to_string(sample.place);
  const std::size_t length = sample.end - sample.begin - (spec_.bos ? 1 : 0);
  return name_ + " tokens " + std::to_string(sample.place) + " to " + std::to_string(sample.place + length - 1);
}

}  // namespace ctk::data
