#include "data/text/pre_tokenizer.h"

#include <iterator>
#include <string_view>
#include <utility>

#include "data/text/byte_level.h"
#include "data/text/components.h"
#include "data/text/unicode.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

// What ByteLevel with use_regex cuts by.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

PreTokenizer split_by(TextFinder find, SplitBehavior behavior, bool inverts = false) {
  return [find = std::move(find), behavior, inverts](Pieces& pieces) {
    return split_pieces(pieces, behavior, inverts, find);
  };
}

PreTokenizer split_by_class(bool (*holds)(char32_t), SplitBehavior behavior) {
  return split_by(
      [holds](std::string_view text, std::vector<Match>& matches) {
        find_characters(text, holds, matches);
        return Status();
      },
      behavior);
}

Result<TextFinder> pattern_finder(std::string_view pattern, const std::string& where) {
  CTK_TRY(const std::shared_ptr<const Pattern> compiled, Pattern::compile(pattern, where));
  return TextFinder([compiled](std::string_view text, std::vector<Match>& matches) {
    return Pattern::Finder(*compiled).find_all(text, matches);
  });
}

Result<SplitBehavior> behavior_of(const JsonNode& node, const std::string& fallback) {
  CTK_TRY(const std::string name, node.text("behavior", fallback));
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  return node.child("behavior").expected("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

using Steps = std::vector<PreTokenizer>;

Status add_byte_level(const JsonNode& node, Steps& steps) {
  CTK_TRY(const bool adds_space, node.flag("add_prefix_space", true));
  CTK_TRY(const bool uses_regex, node.flag("use_regex", true));
  if (adds_space)
    steps.push_back([](Pieces& pieces) {
      rewrite_pieces(pieces, [](std::string_view text, bool, std::string& out) {
        if (!text.starts_with(' ')) out += ' ';
        out += text;
      });
      return Status();
    });
  if (uses_regex) {
    CTK_TRY(TextFinder find, pattern_finder(kByteLevelPattern, node.where()));
    steps.push_back(split_by(std::move(find), SplitBehavior::isolated));
  }
  steps.push_back([](Pieces& pieces) {
    rewrite_pieces(pieces, [](std::string_view text, bool, std::string& out) { append_byte_level(out, text); });
    return Status();
  });
  return {};
}

Status add_split(const JsonNode& node, Steps& steps) {
  CTK_TRY(const SplitBehavior behavior, behavior_of(node, ""));
  CTK_TRY(const bool inverts, node.flag("invert", false));
  CTK_TRY(TextFinder find, read_finder(node.child("pattern")));
  steps.push_back(split_by(std::move(find), behavior, inverts));
  return {};
}

Status add_digits(const JsonNode& node, Steps& steps) {
  CTK_TRY(const bool individual, node.flag("individual_digits", false));
  steps.push_back(split_by_class(is_numeric, individual ? SplitBehavior::isolated : SplitBehavior::contiguous));
  return {};
}

Status add_whitespace_split(const JsonNode&, Steps& steps) {
  steps.push_back(split_by_class(is_whitespace, SplitBehavior::removed));
  return {};
}

// Runs of word characters and runs of what is neither word nor space; spaces vanish.
Status add_whitespace(const JsonNode&, Steps& steps) {
  const auto kind_of = [](char32_t code) {
    return code == kInvalidByte ? 2 : is_word(code) ? 0 : is_whitespace(code) ? 1 : 2;
  };
  const auto find_runs = [kind_of](std::string_view text, std::vector<Match>& matches) {
    int last = 1;
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Char c = decode_utf8(text, at);
      const int kind = kind_of(c.code);
      if (kind != 1 && kind == last)
        matches.back().end = at + c.length;
      else if (kind != 1)
        matches.push_back({at, at + c.length});
      last = kind;
      at += c.length;
    }
    return Status();
  };
  steps.push_back(split_by(find_runs, SplitBehavior::removed, true));
  return {};
}

Status add_bert(const JsonNode& node, Steps& steps) {
  CTK_CHECK(add_whitespace_split(node, steps));
  steps.push_back(split_by_class(is_punctuation, SplitBehavior::isolated));
  return {};
}

Status add_punctuation(const JsonNode& node, Steps& steps) {
  CTK_TRY(const SplitBehavior behavior, behavior_of(node, "Isolated"));
  steps.push_back(split_by_class(is_punctuation, behavior));
  return {};
}

Status add_delimiter_split(const JsonNode& node, Steps& steps) {
  CTK_TRY(const std::string delimiter, node.text("delimiter", ""));
  if (delimiter.empty()) return node.child("delimiter").expected("a character");
  steps.push_back(split_by(
      [delimiter](std::string_view text, std::vector<Match>& matches) {
        find_text(text, delimiter, matches);
        return Status();
      },
      SplitBehavior::removed));
  return {};
}

Status add_metaspace(const JsonNode& node, Steps& steps) {
  CTK_TRY(const std::string mark, node.text("replacement", "\u2581"));
  if (mark.empty()) return node.child("replacement").expected("a character");
  CTK_TRY(const bool adds_space, node.flag("add_prefix_space", true));  // how older files say prepend_scheme
  CTK_TRY(const std::string scheme, node.text("prepend_scheme", adds_space ? "always" : "never"));
  if (scheme != "always" && scheme != "never" && scheme != "first")
    return node.child("prepend_scheme").expected("always, never or first");
  CTK_TRY(const bool splits, node.flag("split", true));
  steps.push_back([mark, scheme](Pieces& pieces) {
    rewrite_pieces(pieces, [&](std::string_view text, bool is_first, std::string& out) {
      const bool prepends = scheme == "always" || (scheme == "first" && is_first);
      if (prepends && !text.starts_with(mark) && !text.starts_with(' ')) out += mark;
      for (char c : text)
        if (c == ' ')
          out += mark;
        else
          out += c;
    });
    return Status();
  });
  if (splits)
    steps.push_back(split_by(
        [mark](std::string_view text, std::vector<Match>& matches) {
          find_text(text, mark, matches);
          return Status();
        },
        SplitBehavior::merged_with_next));
  return {};
}

Status add_sequence(const JsonNode& node, Steps& steps);

using Kind = ComponentKind<Steps>;
constexpr Kind kKinds[] = {{"ByteLevel", add_byte_level},
                           {"Split", add_split},
                           {"Digits", add_digits},
                           {"Whitespace", add_whitespace},
                           {"WhitespaceSplit", add_whitespace_split},
                           {"BertPreTokenizer", add_bert},
                           {"Punctuation", add_punctuation},
                           {"CharDelimiterSplit", add_delimiter_split},
                           {"Metaspace", add_metaspace},
                           {"Sequence", add_sequence}};

Status add_step(const JsonNode& node, Steps& steps) {
  return add_component<Steps>(node, kKinds, "pre-tokenizer", steps);
}

Status add_sequence(const JsonNode& node, Steps& steps) {
  return add_components<Steps>(node, "pretokenizers", kKinds, "pre-tokenizer", steps);
}

}  // namespace

Result<std::vector<PreTokenizer>> read_pre_tokenizers(const JsonNode& section) {
  Steps steps;
  if (!section.is_absent()) CTK_CHECK(add_step(section, steps));
  return steps;
}

Result<TextFinder> read_finder(const JsonNode& pattern) {
  if (const JsonNode regex = pattern.child("Regex"); !regex.is_absent()) {
    CTK_TRY(const std::string text, regex.text());
    return pattern_finder(text, regex.where());
  }
  const JsonNode literal = pattern.child("String");
  if (literal.is_absent()) return pattern.expected("{\"String\": ...} or {\"Regex\": ...}");
  CTK_TRY(const std::string text, literal.text());
  return TextFinder([text](std::string_view in, std::vector<Match>& matches) {
    if (!text.empty()) find_text(in, text, matches);
    return Status();
  });
}

}  // namespace ctk::data
