#include "data/text/normalizer.h"

#include <string_view>
#include <utility>

#include "data/text/byte_level.h"
#include "data/text/components.h"
#include "data/text/pre_tokenizer.h"
#include "data/text/precompiled.h"
#include "data/text/unicode.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

using Steps = std::vector<Normalizer>;

// Calls `visit` with each character and its bytes.
template <class Visit>
void each_character(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    visit(c.code, text.substr(at, c.length));
    at += c.length;
  }
}

std::string without(std::string_view text, bool (*is_dropped)(char32_t)) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](char32_t code, std::string_view bytes) {
    if (code == kInvalidByte || !is_dropped(code)) out += bytes;
  });
  return out;
}

template <NormalForm form>
Status add_form(const JsonNode&, Steps& steps) {
  steps.push_back([](std::string& text) {
    text = normalize(text, form);
    return Status();
  });
  return {};
}

Status add_lowercase(const JsonNode&, Steps& steps) {
  steps.push_back([](std::string& text) {
    text = to_lower(text);
    return Status();
  });
  return {};
}

Status add_strip_accents(const JsonNode&, Steps& steps) {
  steps.push_back([](std::string& text) {
    text = without(text, is_mark);
    return Status();
  });
  return {};
}

Status add_strip(const JsonNode& node, Steps& steps) {
  CTK_TRY(const bool left, node.flag("strip_left", true));
  CTK_TRY(const bool right, node.flag("strip_right", true));
  steps.push_back([left, right](std::string& text) {
    std::size_t begin = 0, end = text.size();
    while (left && begin < end) {
      const Utf8Char c = decode_utf8(text, begin);
      if (c.code == kInvalidByte || !is_whitespace(c.code)) break;
      begin += c.length;
    }
    while (right && begin < end) {
      const std::size_t start = previous_utf8(text, end);
      const Utf8Char c = decode_utf8(text, start);
      if (c.code == kInvalidByte || !is_whitespace(c.code)) break;
      end = start;
    }
    text = text.substr(begin, end - begin);
    return Status();
  });
  return {};
}

Status add_replace(const JsonNode& node, Steps& steps) {
  CTK_TRY(const std::string content, node.child("content").text());
  CTK_TRY(TextFinder find, read_finder(node.child("pattern")));
  steps.push_back([content, find = std::move(find)](std::string& text) -> Status {
    std::vector<Match> matches;
    CTK_CHECK(find(text, matches));
    std::string out;
    if (matches.size() > 0 && content.size() > most_normalized(text.size()) / matches.size())
      return normalized_too_long(text.size(), matches.size() * content.size());
    out.reserve(text.size() + matches.size() * content.size());
    std::size_t at = 0;
    for (const Match& match : matches) {
      out.append(text, at, match.begin - at);
      out += content;
      at = match.end;
    }
    out.append(text, at);
    text = std::move(out);
    return {};
  });
  return {};
}

Status add_prepend(const JsonNode& node, Steps& steps) {
  CTK_TRY(const std::string prefix, node.child("prepend").text());
  steps.push_back([prefix](std::string& text) {
    if (!text.empty()) text.insert(0, prefix);
    return Status();
  });
  return {};
}

Status add_byte_level(const JsonNode&, Steps& steps) {
  steps.push_back([](std::string& text) {
    std::string out;
    append_byte_level(out, text);
    text = std::move(out);
    return Status();
  });
  return {};
}

// Drops what cannot be seen, makes every space a plain one. Bytes that are no UTF-8 go the way of U+FFFD.
std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](char32_t code, std::string_view bytes) {
    if (code == kInvalidByte || is_control(code)) return;
    out += is_whitespace(code) ? std::string_view(" ") : bytes;
  });
  return out;
}

std::string space_chinese(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](char32_t code, std::string_view bytes) {
    const bool stands_alone = code != kInvalidByte && is_chinese(code);
    if (stands_alone) out += ' ';
    out += bytes;
    if (stands_alone) out += ' ';
  });
  return out;
}

Status add_bert(const JsonNode& node, Steps& steps) {
  CTK_TRY(const bool cleans, node.flag("clean_text", true));
  CTK_TRY(const bool spaces, node.flag("handle_chinese_chars", true));
  CTK_TRY(const bool lowers, node.flag("lowercase", true));
  CTK_TRY(const bool strips, node.flag("strip_accents", lowers));
  steps.push_back([=](std::string& text) {
    if (cleans) text = clean(text);
    if (spaces) text = space_chinese(text);
    if (strips) text = without(normalize(text, NormalForm::nfd), is_nonspacing);
    if (lowers) text = to_lower(text);
    return Status();
  });
  return {};
}

Status add_sequence(const JsonNode& node, Steps& steps);

using Kind = ComponentKind<Steps>;
constexpr Kind kKinds[] = {{"NFC", add_form<NormalForm::nfc>},
                           {"NFD", add_form<NormalForm::nfd>},
                           {"NFKC", add_form<NormalForm::nfkc>},
                           {"NFKD", add_form<NormalForm::nfkd>},
                           {"Lowercase", add_lowercase},
                           {"StripAccents", add_strip_accents},
                           {"Strip", add_strip},
                           {"Replace", add_replace},
                           {"Prepend", add_prepend},
                           {"ByteLevel", add_byte_level},
                           {"BertNormalizer", add_bert},
                           {"Precompiled", add_precompiled},
                           {"Sequence", add_sequence}};

Status add_step(const JsonNode& node, Steps& steps) {
  return add_component<Steps>(node, kKinds, "normalizer", steps);
}

Status add_sequence(const JsonNode& node, Steps& steps) {
  return add_components<Steps>(node, "normalizers", kKinds, "normalizer", steps);
}

}  // namespace

Error normalized_too_long(std::size_t from, std::size_t to) {
  return input_error("normalizer: expected a text of " + std::to_string(from) + " bytes to become at most " +
                     std::to_string(most_normalized(from)) + ", found " + std::to_string(to) +
                     ". Mend the normalizer of the tokenizer file");
}

Status apply_normalizers(const std::vector<Normalizer>& steps, std::string& text) {
  const std::size_t before = text.size();
  for (const Normalizer& step : steps) {
    CTK_CHECK(step(text));
    if (text.size() > most_normalized(before)) return normalized_too_long(before, text.size());
  }
  return {};
}

Result<std::vector<Normalizer>> read_normalizers(const JsonNode& section) {
  Steps steps;
  if (!section.is_absent()) CTK_CHECK(add_step(section, steps));
  return steps;
}

}  // namespace ctk::data
