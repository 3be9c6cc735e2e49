#include "data/text/decoder.h"

#include <string_view>
#include <utility>

#include "data/text/byte_level.h"
#include "data/text/components.h"
#include "data/text/pre_tokenizer.h"

namespace ctk::data {
namespace {

using Tokens = std::vector<std::string>;
using Steps = std::vector<Decoder>;

void replace_all(std::string& text, std::string_view wanted, std::string_view with) {
  if (wanted.empty()) return;
  for (std::size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + with.size()))
    text.replace(at, wanted.size(), with);
}

std::string joined(const Tokens& tokens, std::string_view between = "") {
  std::string text;
  for (const std::string& token : tokens) {
    if (!text.empty() || &token != &tokens.front()) text += between;
    text += token;
  }
  return text;
}

Status add_byte_level(const JsonNode&, Steps& steps) {
  steps.push_back([](Tokens& tokens) {
    for (std::string& token : tokens) token = from_byte_level(token);
    tokens = {joined(tokens)};
    return Status();
  });
  return {};
}

// Spaces that were put before punctuation and short forms.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kForms) replace_all(text, from, to);
}

Status add_word_piece(const JsonNode& node, Steps& steps) {
  CTK_TRY(const std::string prefix, node.text("prefix", "##"));
  CTK_TRY(const bool cleans, node.flag("cleanup", true));
  steps.push_back([prefix, cleans](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i != 0) tokens[i] = tokens[i].starts_with(prefix) ? tokens[i].substr(prefix.size()) : " " + tokens[i];
      if (cleans) clean_up(tokens[i]);
    }
    return Status();
  });
  return {};
}

Status add_metaspace(const JsonNode& node, Steps& steps) {
  CTK_TRY(const std::string mark, node.text("replacement", "\u2581"));
  CTK_TRY(const bool adds_space, node.flag("add_prefix_space", true));
  CTK_TRY(const std::string scheme, node.text("prepend_scheme", adds_space ? "always" : "never"));
  steps.push_back([mark, drops = scheme != "never"](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], mark, i == 0 && drops ? "" : " ");
    return Status();
  });
  return {};
}

int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                : -1;
}

// <0x41> is its byte. Bytes that are no UTF-8 together stay what they are.
Status add_byte_fallback(const JsonNode&, Steps& steps) {
  steps.push_back([](Tokens& tokens) {
    for (std::string& token : tokens) {
      if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') continue;
      const int high = hex_digit(token[3]), low = hex_digit(token[4]);
      if (high >= 0 && low >= 0) token = std::string(1, static_cast<char>(high * 16 + low));
    }
    return Status();
  });
  return {};
}

Status add_fuse(const JsonNode&, Steps& steps) {
  steps.push_back([](Tokens& tokens) {
    tokens = {joined(tokens)};
    return Status();
  });
  return {};
}

Status add_strip(const JsonNode& node, Steps& steps) {
  CTK_TRY(const std::string content, node.text("content", " "));
  CTK_TRY(const std::int64_t start, node.integer("start", 0));
  CTK_TRY(const std::int64_t stop, node.integer("stop", 0));
  if (content.empty()) return node.child("content").expected("a character");
  steps.push_back([content, start, stop](Tokens& tokens) {
    for (std::string& token : tokens) {
      std::string_view text = token;
      for (std::int64_t i = 0; i < start && text.starts_with(content); ++i) text.remove_prefix(content.size());
      for (std::int64_t i = 0; i < stop && text.ends_with(content); ++i) text.remove_suffix(content.size());
      token = std::string(text);
    }
    return Status();
  });
  return {};
}

Status add_replace(const JsonNode& node, Steps& steps) {
  CTK_TRY(const std::string content, node.child("content").text());
  CTK_TRY(TextFinder find, read_finder(node.child("pattern")));
  steps.push_back([content, find = std::move(find)](Tokens& tokens) -> Status {
    std::vector<Match> matches;
    for (std::string& token : tokens) {
      matches.clear();
      CTK_CHECK(find(token, matches));
      for (std::size_t i = matches.size(); i-- > 0;)
        token.replace(matches[i].begin, matches[i].end - matches[i].begin, content);
    }
    return {};
  });
  return {};
}

Status add_bpe(const JsonNode& node, Steps& steps) {
  CTK_TRY(const std::string suffix, node.text("suffix", "</w>"));
  steps.push_back([suffix](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    return Status();
  });
  return {};
}

Status add_sequence(const JsonNode& node, Steps& steps);

using Kind = ComponentKind<Steps>;
constexpr Kind kKinds[] = {{"ByteLevel", add_byte_level},
                           {"WordPiece", add_word_piece},
                           {"Metaspace", add_metaspace},
                           {"ByteFallback", add_byte_fallback},
                           {"Fuse", add_fuse},
                           {"Strip", add_strip},
                           {"Replace", add_replace},
                           {"BPEDecoder", add_bpe},
                           {"Sequence", add_sequence}};

Status add_step(const JsonNode& node, Steps& steps) {
  return add_component<Steps>(node, kKinds, "decoder", steps);
}

Status add_sequence(const JsonNode& node, Steps& steps) {
  return add_components<Steps>(node, "decoders", kKinds, "decoder", steps);
}

}  // namespace

Result<std::vector<Decoder>> read_decoders(const JsonNode& section) {
  Steps steps;
  if (!section.is_absent()) {
    CTK_CHECK(add_step(section, steps));
  } else {
    steps.push_back([](Tokens& tokens) {
      tokens = {joined(tokens, " ")};
      return Status();
    });
  }
  return steps;
}

}  // namespace ctk::data
