// Writers of character maps as sentencepiece compiles them; they share no code with the reader.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ctk::data::test {

inline std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

// The units of a double-array trie: each node's children fill a block of 256 of their own.
inline std::vector<std::uint32_t> chars_map_units(const std::map<std::string, std::string>& rules, std::string& texts) {
  struct Node {
    std::map<std::uint8_t, std::size_t> children;
    const std::string* text = nullptr;
  };
  std::vector<Node> nodes(1);
  for (const auto& [from, to] : rules) {
    std::size_t node = 0;
    for (char c : from) {
      const auto [at, is_new] = nodes[node].children.emplace(static_cast<std::uint8_t>(c), nodes.size());
      node = at->second;
      if (is_new) nodes.emplace_back();
    }
    nodes[node].text = &to;
  }
  std::vector<std::uint32_t> units(256 * (nodes.size() + 1), 0x80000000u), place(nodes.size(), 0);
  std::vector<std::uint32_t> label(nodes.size(), 0);
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    const std::uint32_t base = 256 * (n + 1);
    for (const auto& [byte, child] : nodes[n].children) {
      place[child] = base ^ byte;
      label[child] = byte;
    }
    units[place[n]] = (place[n] ^ base) << 10 | (nodes[n].text != nullptr ? 1u << 8 : 0u) | label[n];
    if (nodes[n].text == nullptr) continue;
    units[base] = 0x80000000u | static_cast<std::uint32_t>(texts.size());
    texts += *nodes[n].text + '\0';
  }
  return units;
}

inline std::string chars_map_bytes(const std::vector<std::uint32_t>& units, const std::string& texts) {
  std::string bytes = little_endian(static_cast<std::uint32_t>(4 * units.size()));
  for (std::uint32_t unit : units) bytes += little_endian(unit);
  return bytes + texts;
}

inline std::string chars_map_bytes(const std::map<std::string, std::string>& rules) {
  std::string texts;
  const auto units = chars_map_units(rules, texts);
  return chars_map_bytes(units, texts);
}

inline std::string to_base64(const std::string& bytes) {
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<std::uint8_t>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) text += at + i > bytes.size() ? '=' : digits[bits >> (18 - 6 * i) & 63];
  }
  return text;
}

}  // namespace ctk::data::test
