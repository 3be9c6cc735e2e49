#include "data/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/printable.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

constexpr std::size_t kStackBytes = std::size_t{8} << 20;  // of compiled patterns; they take 32 kB to start with

const pcre2_code* code_of(void* code) {
  return static_cast<const pcre2_code*>(code);
}

std::string message_of(int error) {
  PCRE2_UCHAR text[256];
  if (pcre2_get_error_message(error, text, sizeof text) < 0) return "error " + std::to_string(error);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

Result<std::shared_ptr<const Pattern>> Pattern::compile(std::string_view pattern, const std::string& where) {
  CTK_TRY(const std::string translated, translate_pattern(pattern, where));
  std::shared_ptr<Pattern> made(new Pattern);
  made->where_ = where;
  made->source_ = pattern;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  made->code_ =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (made->code_ == nullptr)
    return input_error(where + ": expected a regular expression, found \"" + printable(pattern) +
                       "\": " + message_of(error) + " (at byte " + std::to_string(offset) + " of \"" +
                       printable(translated) + "\"). Mend the tokenizer file.");
  // Without a just-in-time compiler matching is slower, and the same.
  (void)pcre2_jit_compile(static_cast<pcre2_code*>(made->code_), PCRE2_JIT_COMPLETE);
  return std::shared_ptr<const Pattern>(std::move(made));
}

Pattern::~Pattern() {
  pcre2_code_free(static_cast<pcre2_code*>(code_));
}

Pattern::Finder::Finder(const Pattern& pattern)
    : pattern_(&pattern),
      data_(pcre2_match_data_create_from_pattern(code_of(pattern.code_), nullptr)),
      context_(pcre2_match_context_create(nullptr)),
      stack_(nullptr) {}

Pattern::Finder::~Finder() {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(data_));
  pcre2_match_context_free(static_cast<pcre2_match_context*>(context_));
  pcre2_jit_stack_free(static_cast<pcre2_jit_stack*>(stack_));
}

Status Pattern::Finder::find_all(std::string_view text, std::vector<Match>& matches) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = valid_utf8_prefix(text.substr(at));
    if (length != 0) CTK_CHECK(find_in(text.substr(at, length), at, matches));
    at += length + 1;  // a byte that is no UTF-8 matches nothing
  }
  return {};
}

Status Pattern::Finder::find_in(std::string_view text, std::size_t offset, std::vector<Match>& matches) {
  const auto* code = code_of(pattern_->code_);
  auto* data = static_cast<pcre2_match_data*>(data_);
  auto* context = static_cast<pcre2_match_context*>(context_);
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data);
  std::size_t at = 0;
  std::size_t last_end = text.size() + 1;  // of the last match
  while (at <= text.size()) {
    const auto search = [&] {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, PCRE2_NO_UTF_CHECK, data,
                         context);
    };
    int found = search();
    if (found == PCRE2_ERROR_JIT_STACKLIMIT && stack_ == nullptr) {
      stack_ = pcre2_jit_stack_create(32 << 10, kStackBytes, nullptr);
      pcre2_jit_stack_assign(context, nullptr, stack_);
      found = search();
    }
    if (found == PCRE2_ERROR_NOMATCH) return {};
    if (found < 0)
      return input_error(pattern_->where_ + ": pattern \"" + printable(pattern_->source_) +
                         "\": expected to match a text of " + std::to_string(text.size()) + " bytes, found at byte " +
                         std::to_string(at) + ": " + message_of(found) + ". Cut the text into shorter ones.");
    const bool is_repeated = span[0] == span[1] && span[1] == last_end;  // empty, right behind the last match
    if (!is_repeated) matches.push_back({offset + span[0], offset + span[1]});
    last_end = span[1];
    at = span[1];
    if (!is_repeated) continue;
    if (at == text.size()) return {};
    at += decode_utf8(text, at).length;
  }
  return {};
}

}  // namespace ctk::data
