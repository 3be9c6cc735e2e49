// Small tokenizer files for the tests, as text.
#pragma once

#include <string>

namespace ctk::data::test {

inline std::string section(const std::string& name, const std::string& json) {
  return json.empty() ? "" : ", \"" + name + "\": " + json;
}

struct TokenizerJson {
  std::string model;  // JSON of each section; empty: absent
  std::string pre_tokenizer, normalizer, post_processor, decoder, added_tokens;
  std::string text() const {
    return "{\"version\": \"1.0\"" + section("added_tokens", added_tokens) + section("normalizer", normalizer) +
           section("pre_tokenizer", pre_tokenizer) + section("post_processor", post_processor) +
           section("decoder", decoder) + section("model", model) + "}";
  }
};

// Byte-level BPE: "ab" goes before " a", then "abc"; \u0120 stands for the space.
inline TokenizerJson byte_level_abc() {
  TokenizerJson json;
  json.model =
      R"({"type": "BPE", "vocab": {"<e>": 0, "a": 1, "b": 2, "c": 3, "\u0120": 4, "ab": 5, "\u0120a": 6, "abc": 7},
          "merges": ["a b", "\u0120 a", "ab c"]})";
  json.pre_tokenizer = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})";
  json.decoder = R"({"type": "ByteLevel"})";
  json.added_tokens = R"([{"id": 0, "content": "<e>", "special": true, "normalized": false}])";
  return json;
}

}  // namespace ctk::data::test
