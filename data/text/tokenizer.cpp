#include "data/text/tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "core/printable.h"
#include "data/text/tokenizer_body.h"

namespace ctk::data {
namespace {

constexpr std::size_t kLongestCached = 256;  // bytes; longer pieces hardly come twice

struct IdSpan {
  std::size_t begin, count;
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Body> body) : body_(std::move(body)) {}
Tokenizer::~Tokenizer() = default;

Status Tokenizer::Body::add(AddedToken token, const std::string& token_where) {
  if (const std::int64_t known = model->vocabulary.find(token.content); known >= 0 && known != token.id)
    return input_error(token_where + ": token \"" + printable(token.content) + "\": expected id " +
                       std::to_string(known) + " as in the vocabulary, found " + std::to_string(token.id) +
                       ". Take vocabulary and added tokens of one tokenizer.");
  if (const std::string* other = model->vocabulary.token(token.id); other != nullptr && *other != token.content)
    return input_error(token_where + ": expected each id once, found " + std::to_string(token.id) + " for \"" +
                       printable(token.content) + "\" and in the vocabulary for \"" + printable(*other) +
                       "\". Take vocabulary and added tokens of one tokenizer.");
  CTK_CHECK(added_vocabulary.add(token.content, token.id, token_where));
  std::string content = token.content;
  if (token.is_normalized) CTK_CHECK(apply_normalizers(normalizers, content));
  (token.is_normalized ? normalized : raw).add(token, content);
  added.push_back(std::move(token));
  return {};
}

Result<std::vector<std::int64_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  // 1. Added tokens, then the normalizers on what lies between, then added tokens in what these made of it.
  std::vector<Piece> raw;
  body_->raw.split(text, 0, options.find_special_tokens, raw);
  Pieces pieces;
  for (const Piece& piece : raw) {
    std::string part(text.substr(piece.begin, piece.end - piece.begin));
    const std::size_t offset = pieces.text.size();
    if (piece.id < 0) CTK_CHECK(apply_normalizers(body_->normalizers, part));
    pieces.text += part;
    if (piece.id >= 0)
      pieces.list.push_back({offset, pieces.text.size(), piece.id});
    else
      body_->normalized.split(part, offset, options.find_special_tokens, pieces.list);
  }
  // 2. Smaller pieces.
  pieces.is_text_at_start = !pieces.list.empty() && pieces.list[0].id < 0;
  for (const PreTokenizer& step : body_->pre_tokenizers) CTK_CHECK(step(pieces));
  // 3. Ids, each different piece once.
  std::vector<std::int64_t> ids;
  if (options.add_special_tokens) ids = body_->prefix;
  std::unordered_map<std::string_view, IdSpan> known;
  for (const Piece& piece : pieces.list) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
      continue;
    }
    const std::string_view part = pieces.of(piece);
    const std::size_t begin = ids.size();
    const auto cached = part.size() < kLongestCached ? known.find(part) : known.end();
    if (cached != known.end()) {
      const IdSpan span = cached->second;
      ids.resize(begin + span.count);
      std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(span.begin), span.count,
                  ids.begin() + static_cast<std::ptrdiff_t>(begin));
      continue;
    }
    CTK_CHECK(body_->model->encode(part, ids));
    if (part.size() < kLongestCached) known.emplace(part, IdSpan{begin, ids.size() - begin});
  }
  if (options.add_special_tokens) ids.insert(ids.end(), body_->suffix.begin(), body_->suffix.end());
  return ids;
}

Result<std::string> Tokenizer::decode(std::span<const std::int64_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  const auto is_special = [&](std::int64_t id) {
    const auto at = std::lower_bound(body_->added.begin(), body_->added.end(), id,
                                     [](const AddedToken& token, std::int64_t wanted) { return token.id < wanted; });
    return at != body_->added.end() && at->id == id && at->is_special;
  };
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (skip_special_tokens && is_special(ids[i])) continue;
    std::optional<std::string> token = token_of(ids[i]);
    if (!token)
      return input_error(where() + ": expected ids of tokens, 0 to " + std::to_string(vocabulary_size() - 1) +
                         ", found " + std::to_string(ids[i]) + " at place " + std::to_string(i) +
                         ". Take the tokenizer that the ids belong to.");
    tokens.push_back(std::move(*token));
  }
  if (tokens.empty()) return std::string();
  for (const Decoder& decode : body_->decoders) CTK_CHECK(decode(tokens));
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

std::int64_t Tokenizer::vocabulary_size() const {
  return std::max(body_->model->vocabulary.size(), body_->added_vocabulary.size());
}

std::optional<std::int64_t> Tokenizer::id_of(std::string_view token) const {
  const std::int64_t id = body_->find(token);
  return id >= 0 ? std::optional(id) : std::nullopt;
}

std::optional<std::string> Tokenizer::token_of(std::int64_t id) const {
  const std::string* token = body_->token(id);
  return token != nullptr ? std::optional(*token) : std::nullopt;
}

std::span<const AddedToken> Tokenizer::added_tokens() const {
  return body_->added;
}
std::optional<std::int64_t> Tokenizer::bos_id() const {
  return body_->bos;
}
std::optional<std::int64_t> Tokenizer::eos_id() const {
  return body_->eos;
}
std::optional<std::int64_t> Tokenizer::unknown_id() const {
  return body_->model->unknown_id;
}
std::optional<std::int64_t> Tokenizer::padding_id() const {
  return body_->padding;
}
const std::string& Tokenizer::where() const {
  return body_->where;
}
const std::string& Tokenizer::fingerprint() const {
  return body_->fingerprint;
}

}  // namespace ctk::data
