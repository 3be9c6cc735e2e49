#include "data/text/token_source.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "core/file.h"
#include "core/hash.h"
#include "core/printable.h"
#include "data/metric.h"

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
  if (spec.pairs) {
    CTK_CHECK(source->cut_pairs(file.text()));
  } else {
    CTK_CHECK(spec.lines ? source->cut_lines(file.text()) : source->cut_windows(file.text()));
  }
  return std::shared_ptr<const TokenSource>(std::move(source));
}

void TokenSource::append(std::span<const std::int64_t> ids, std::size_t place) {
  const std::size_t begin = ids_.size();
  if (spec_.bos) ids_.push_back(*tokenizer_->bos_id());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  samples_.push_back({begin, ids_.size(), place, hash64(std::as_bytes(ids))});
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

// The line with the tokenizer's special tokens around it, its own tokens cut so that all fit into the context.
std::vector<std::int64_t> TokenSource::wrapped(std::string_view line, const std::vector<std::int64_t>& ids) const {
  const auto whole = tokenizer_->encode(line, {.add_special_tokens = true});
  if (!whole || whole->size() <= ids.size()) return ids;
  const auto inner = std::ranges::search(*whole, ids);
  const auto most =
      static_cast<std::size_t>(spec_.context) - std::min<std::size_t>(spec_.context, whole->size() - ids.size());
  std::vector<std::int64_t> cut(whole->begin(), inner.begin());
  cut.insert(cut.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), most)));
  cut.insert(cut.end(), inner.end(), whole->end());
  return cut;
}

Status TokenSource::add_line(std::string_view line, std::size_t number) {
  auto ids = tokenizer_->encode(line);
  if (!ids) return std::move(ids).error().with_context(path_ + " line " + std::to_string(number));
  total_ += ids->size();
  const std::vector<std::int64_t> all = spec_.special_tokens ? wrapped(line, *ids) : *ids;
  if (all.size() + (spec_.bos ? 1 : 0) < 2) {
    ++too_short_;
    return {};
  }
  append(all, number);
  samples_.back().hash = hash64(std::as_bytes(std::span(*ids)));
  return {};
}

namespace {

// Calls visit(line, number) for each line that is not empty.
template <class Visit>
Result<std::size_t> each_line(std::string_view text, const Visit& visit) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, newline - at);
    at = newline + 1;
    ++number;
    if (line.ends_with('\r') && newline < text.size()) line.remove_suffix(1);
    if (!line.empty()) CTK_CHECK(visit(line, number));
  }
  return number;
}

}  // namespace

Status TokenSource::cut_lines(std::string_view text) {
  CTK_TRY(const std::size_t number,
          each_line(text, [&](std::string_view line, std::size_t place) { return add_line(line, place); }));
  if (samples_.empty())
    return input_error(path_ + ": lines: expected lines of at least two tokens, found none among " +
                       std::to_string(number) + " (" + std::to_string(text.size()) +
                       " bytes). Give a text that has some, or leave lines out.");
  return {};
}

Status TokenSource::cut_pairs(std::string_view text) {
  std::int64_t pair = 0;
  CTK_TRY(const std::size_t number, each_line(text, [&](std::string_view line, std::size_t place) -> Status {
            const std::string where = path_ + " line " + std::to_string(place);
            const std::size_t first = std::min(line.find('\t'), line.size());
            const std::size_t second = first < line.size() ? line.find('\t', first + 1) : std::string_view::npos;
            double score = 0;
            const auto parsed = std::from_chars(line.data(), line.data() + first, score);
            const bool is_number = parsed.ec == std::errc() && parsed.ptr == line.data() + first;
            if (second == std::string_view::npos || !is_number || !(std::abs(score) <= kMostScore)) {
              return input_error(where + ": expected SCORE TAB TEXT TAB TEXT with a score of at most " +
                                 std::to_string(static_cast<int>(kMostScore)) + ", found \"" +
                                 printable(std::string(line.substr(0, 60))) +
                                 "\". Correct the line, or leave pairs out.");
            }
            const std::size_t before = samples_.size();
            CTK_CHECK(add_line(line.substr(first + 1, second - first - 1), place));
            CTK_CHECK(add_line(line.substr(second + 1), place));
            if (samples_.size() != before + 2)
              return input_error(where +
                                 ": expected two texts of at least two tokens, found a shorter one. Correct the "
                                 "line, or leave it out.");
            labels_.insert(labels_.end(), 2, pair_label(pair++, score));
            return {};
          }));
  if (samples_.empty())
    return input_error(path_ + ": pairs: expected lines of SCORE TAB TEXT TAB TEXT, found none among " +
                       std::to_string(number) + ". Give a file that has some, or leave pairs out.");
  return {};
}

std::span<const std::int64_t> TokenSource::ids(std::size_t index) const {
  const Sample& sample = samples_[index];
  const std::size_t length = std::min(sample.end - sample.begin, static_cast<std::size_t>(spec_.context));
  return std::span(ids_).subspan(sample.begin, length);
}

std::string TokenSource::where(std::size_t index) const {
  const Sample& sample = samples_[index];
  if (spec_.lines || spec_.pairs) return name_ + " line " + std::to_string(sample.place);
  const std::size_t length = sample.end - sample.begin - (spec_.bos ? 1 : 0);
  return name_ + " tokens " + std::to_string(sample.place) + " to " + std::to_string(sample.place + length - 1);
}

}  // namespace ctk::data
