// Inside the text form: its lines with their keys (printing, diffing) and the pieces both directions share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/text.h"

namespace ctk::graph::text {

inline constexpr std::size_t kInlineElements = 8;  // a constant up to this size prints its values
inline constexpr std::size_t kInlineOpaque = 64;   // opaque bytes up to this count print as digits beside a sink

// A line and what it is about: equal keys in two graphs name the same thing.
struct Line {
  std::string key;
  std::string text;
};
// With keys or, when only the text counts, without.
std::vector<Line> lines_of(const Graph& graph, ConstantSink* sink, bool with_keys);

inline bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '/' || c == '-' || c == '+';
}

// --- text_write.cpp
void append_string(std::string& out, std::string_view text);                          // always quoted
void append_word(std::string& out, std::string_view text, bool allow_colon = false);  // quoted when it must be
void append_int(std::string& out, std::int64_t value);
void append_float(std::string& out, float value);
// "dtype [sizes] data"; `known_dtype` and `known_shape` are left out where the tensor has them.
void append_tensor(std::string& out, const Tensor& tensor, ConstantSink* sink, const DType* known_dtype = nullptr,
                   const DeclaredShape* known_shape = nullptr);
void append_attribute(std::string& out, const Attribute& attribute, ConstantSink* sink);

}  // namespace ctk::graph::text
