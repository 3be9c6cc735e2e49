#include "data/text/chars_map.h"

namespace ctk::data {
namespace {

constexpr std::size_t kLongestRule = 1024;  // bytes looked at: a trie that runs in circles takes no quadratic time

std::uint32_t read_uint32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<std::uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

bool has_text(std::uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
std::size_t offset_of(std::uint32_t unit) {
  return static_cast<std::size_t>(unit >> 10) << ((unit & (1u << 9)) >> 6);
}
// The byte that leads to the unit; above 255 where it holds a text's place.
std::uint32_t label_of(std::uint32_t unit) {
  return unit & (1u << 31 | 0xFF);
}
std::size_t text_of(std::uint32_t unit) {
  return unit & 0x7FFFFFFF;
}

Error broken(const std::string& where, const std::string& expected, const std::string& found) {
  return input_error(where + ": expected " + expected + ", found " + found + ". Fetch the file again.");
}

}  // namespace

Result<CharsMap> CharsMap::read(std::string_view bytes, const std::string& where) {
  if (bytes.size() <= 4) return broken(where, "a map of more than 4 bytes", std::to_string(bytes.size()));
  const std::size_t size = read_uint32(bytes, 0);
  if (size == 0 || size % 4 != 0 || size > bytes.size() - 4)
    return broken(where, "a trie of 4 to " + std::to_string(bytes.size() - 4) + " bytes, a multiple of 4",
                  std::to_string(size));
  CharsMap map;
  map.units_.reserve(size / 4);
  for (std::size_t at = 4; at < 4 + size; at += 4) map.units_.push_back(read_uint32(bytes, at));
  map.texts_ = bytes.substr(4 + size);
  CTK_CHECK(map.check(where));
  return map;
}

// Every unit that can be reached points into the trie, every text into the texts.
Status CharsMap::check(const std::string& where) const {
  std::vector<bool> is_seen(units_.size());
  std::vector<std::size_t> open = {0};
  is_seen[0] = true;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    const std::size_t base = at ^ offset_of(units_[at]);
    const std::string unit = ": unit " + std::to_string(at);
    if (base >= units_.size())
      return broken(where + unit, "an offset to one of " + std::to_string(units_.size()) + " units",
                    std::to_string(base));
    if (has_text(units_[at])) {
      const std::size_t text = text_of(units_[base]);
      if (text >= texts_.size() || texts_.find('\0', text) == std::string::npos)
        return broken(where + unit, "a text inside " + std::to_string(texts_.size()) + " bytes that a zero byte ends",
                      "place " + std::to_string(text));
    }
    for (std::uint32_t byte = 1; byte < 256; ++byte) {
      const std::size_t child = base ^ byte;
      if (child >= units_.size() || is_seen[child] || label_of(units_[child]) != byte) continue;
      is_seen[child] = true;
      open.push_back(child);
    }
  }
  return {};
}

CharsMap::Rule CharsMap::find(std::string_view text, bool takes_first) const {
  Rule rule;
  if (units_.empty()) return rule;
  std::size_t at = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size() && i < kLongestRule; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_text(unit)) continue;
    rule = {i + 1, texts_.c_str() + text_of(units_[at])};  // in range: check()
    if (takes_first) break;
  }
  return rule;
}

}  // namespace ctk::data
