#include "core/ranks.h"

#include <algorithm>
#include <cstring>

namespace ctk {
namespace {

// FNV-1a: names of calls, told apart.
std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 1469598103934665603ull;
  for (const char letter : text) number = (number ^ static_cast<unsigned char>(letter)) * 1099511628211ull;
  return number;
}

std::string name_of(int rank, int size) {
  return "rank " + std::to_string(rank) + " of " + std::to_string(size);
}

class Alone final : public Ranks {
 public:
  Alone() : Ranks(0, 1, 1) {}

 private:
  Status carry_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::ranges::copy(mine, all.begin());
    return {};
  }
  Status carry_from_first(std::span<std::byte>) override { return {}; }
  Status carry_sum(std::span<float>) override { return {}; }
};

// A result as bytes: an error's code behind a mark, or the value.
std::string wrapped(const Result<std::string>& result) {
  if (result) return "v" + *result;
  return std::string("e") + static_cast<char>(result.error().code) + result.error().message;
}

Result<std::string> unwrapped(const std::string& bytes) {
  if (bytes.size() >= 2 && bytes[0] == 'e') return Error{static_cast<ErrorCode>(bytes[1]), bytes.substr(2)};
  if (bytes.empty() || bytes[0] != 'v') return internal_error("a rank sent what is no result");
  return bytes.substr(1);
}

}  // namespace

Ranks& alone() {
  static Alone one;
  return one;
}

Share share_of(std::size_t count, int rank, int size) {
  const auto r = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(size);
  const auto begin = [&](std::size_t at) { return at * (count / n) + std::min(at, count % n); };
  return {begin(r), begin(r + 1)};
}

Status Ranks::carried(std::string_view what, Status status) {
  if (status) return {};
  is_lost_ = true;
  over_ = Error{ErrorCode::interrupted,
                name_of(rank_, size_) + ", " + std::string(what) +
                    ": expected an answer from every rank, found a lost connection (" + status.error().message +
                    "): another rank ended. What is done is kept; the same command goes on where this run stopped"};
  return *over_;
}

Result<std::vector<Ranks::Word>> Ranks::meet(std::string_view what, std::uint64_t bytes) {
  if (over_) return *over_;
  const Word mine{number_of(what), bytes, 0, 0};
  std::vector<Word> words(static_cast<std::size_t>(size_));
  CTK_CHECK(carried(what, carry_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(words)))));
  if (std::ranges::any_of(words, [](const Word& word) { return word.is_failed != 0; })) return hear_failure(words, "");
  const auto other = std::ranges::find_if(words, [&](const Word& word) { return word.what != mine.what; });
  if (other != words.end()) {
    over_ = internal_error(name_of(rank_, size_) + ": expected every rank at \"" + std::string(what) + "\", found " +
                           name_of(static_cast<int>(other - words.begin()), size_) +
                           " elsewhere. Give every rank the same version, data and configuration");
    return *over_;
  }
  return words;
}

// Some ranks have failed: all send their messages, those that have none send nothing.
Error Ranks::hear_failure(const std::vector<Word>& words, const std::string& mine) {
  std::size_t longest = 1;
  for (const Word& word : words) longest = std::max(longest, word.is_failed != 0 ? word.bytes : 0);
  std::vector<std::byte> padded(longest), all(longest * words.size());
  std::memcpy(padded.data(), mine.data(), mine.size());
  if (auto status = carried("failure", carry_gather(padded, all)); !status) return status.error();
  const auto first = std::ranges::find_if(words, [](const Word& word) { return word.is_failed != 0; });
  const auto rank = static_cast<std::size_t>(first - words.begin());
  std::string text(reinterpret_cast<const char*>(all.data()) + rank * longest, first->bytes);
  if (rank != 0) text = name_of(static_cast<int>(rank), size_) + ": " + text;
  over_ = Error{static_cast<ErrorCode>(first->code), std::move(text)};
  return *over_;
}

Error Ranks::fail(Error error) {
  if (over_ || is_alone()) return error;
  const Word mine{0, error.message.size(), 1, static_cast<std::uint64_t>(error.code)};
  std::vector<Word> words(static_cast<std::size_t>(size_));
  const auto met =
      carried("failure", carry_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(words))));
  return met ? hear_failure(words, error.message) : error;
}

Result<std::vector<std::string>> Ranks::gather(std::string_view what, const std::string& mine) {
  CTK_TRY(const std::vector<Word> words, meet(what, mine.size()));
  std::size_t longest = 0;
  for (const Word& word : words) longest = std::max<std::size_t>(longest, word.bytes);
  std::vector<std::string> parts(words.size());
  if (longest == 0) return parts;
  std::vector<std::byte> padded(longest), all(longest * words.size());
  std::memcpy(padded.data(), mine.data(), mine.size());
  CTK_CHECK(carried(what, carry_gather(padded, all)));
  for (std::size_t r = 0; r < parts.size(); ++r) {
    parts[r].assign(reinterpret_cast<const char*>(all.data()) + r * longest, words[r].bytes);
  }
  return parts;
}

Result<std::vector<std::string>> Ranks::gather_results(std::string_view what, const Result<std::string>& mine) {
  CTK_TRY(std::vector<std::string> parts, gather(what, wrapped(mine)));
  for (std::string& part : parts) {
    CTK_TRY(part, unwrapped(part));
  }
  return parts;
}

Result<std::string> Ranks::from_first(std::string_view what, const std::string& bytes) {
  if (is_alone()) return bytes;
  CTK_TRY(const std::vector<Word> words, meet(what, bytes.size()));
  std::string all = is_first() ? bytes : std::string(words[0].bytes, '\0');
  if (!all.empty()) CTK_CHECK(carried(what, carry_from_first(std::as_writable_bytes(std::span(all)))));
  return all;
}

Result<std::string> Ranks::first_does(std::string_view what, const std::function<Result<std::string>()>& work) {
  if (is_alone()) return work();
  CTK_TRY(const std::string bytes, from_first(what, is_first() ? wrapped(work()) : std::string()));
  return unwrapped(bytes);
}

Status Ranks::sum(std::string_view what, std::span<float> values) {
  if (is_alone()) return {};
  CTK_TRY(const std::vector<Word> words, meet(what, values.size_bytes()));
  for (const Word& word : words) {
    if (word.bytes == words[0].bytes) continue;
    over_ = internal_error(std::string(what) + ": expected as many values on every rank, found " +
                           std::to_string(words[0].bytes) + " and " + std::to_string(word.bytes) +
                           " bytes. Give every rank the same model");
    return *over_;
  }
  return values.empty() ? Status() : carried(what, carry_sum(values));
}

}  // namespace ctk
