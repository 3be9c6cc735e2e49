// A small GGUF file with every value type, and its parts by hand.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "graph/gguf/container.h"

namespace ctk::graph::gguf::test {

struct Bytes {
  std::string text;
  template <class T>
  Bytes& put(T value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& string(std::string_view value) {
    put(static_cast<std::uint64_t>(value.size()));
    text += value;
    return *this;
  }
  Bytes& key(std::string_view name, std::uint32_t type) { return string(name).put(type); }
  Bytes& tensor(std::string_view name, std::vector<std::uint64_t> dims, std::uint32_t type, std::uint64_t offset) {
    string(name).put(static_cast<std::uint32_t>(dims.size()));
    for (std::uint64_t dim : dims) put(dim);
    return put(type).put(offset);
  }
  Bytes& pad(std::size_t alignment) {
    text.resize((text.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }
};

inline Bytes header(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
  Bytes bytes;
  bytes.text = "GGUF";
  return bytes.put(version).put(tensors).put(keys);
}

inline std::string small_file() {
  Bytes bytes = header(3, 15);
  bytes.key("general.architecture", 8).string("llama");
  bytes.key("n.u8", 0).put(std::uint8_t{200});
  bytes.key("n.i8", 1).put(std::int8_t{-3});
  bytes.key("n.u16", 2).put(std::uint16_t{60000});
  bytes.key("n.i16", 3).put(std::int16_t{-300});
  bytes.key("n.u32", 4).put(std::uint32_t{4000000000u});
  bytes.key("n.i32", 5).put(std::int32_t{-70000});
  bytes.key("n.f32", 6).put(1.5f);
  bytes.key("n.bool", 7).put(std::uint8_t{1});
  bytes.key("n.u64", 10).put(std::uint64_t{1} << 63);
  bytes.key("n.i64", 11).put(std::int64_t{-5});
  bytes.key("n.f64", 12).put(0.25);
  bytes.key("words", 9).put(std::uint32_t{8}).put(std::uint64_t{3}).string("a").string("").string("\xc4\xa0xyz");
  bytes.key("rows", 9).put(std::uint32_t{9}).put(std::uint64_t{2});
  bytes.put(std::uint32_t{5}).put(std::uint64_t{2}).put(std::int32_t{1}).put(std::int32_t{-2});
  bytes.put(std::uint32_t{7}).put(std::uint64_t{1}).put(std::uint8_t{0});
  bytes.key("scores", 9).put(std::uint32_t{6}).put(std::uint64_t{2}).put(0.5f).put(-1.0f);
  bytes.tensor("norm", {4}, 0, 0).tensor("matrix", {32, 2}, 2, 32).tensor("last", {3}, 1, 96).pad(32);
  for (int i = 0; i < 4; ++i) bytes.put(static_cast<float>(i));
  bytes.pad(32);
  for (int row = 0; row < 2; ++row) {
    bytes.put(std::uint16_t{0x3c00});
    for (int i = 0; i < 16; ++i) bytes.put(static_cast<std::uint8_t>(16 * row + i));
  }
  bytes.pad(32);
  for (int i = 0; i < 3; ++i) bytes.put(std::uint16_t{0x4000});
  return bytes.text;
}

// From memory of exactly that length, so that a read past the end is seen by a sanitizer.
inline Result<File> parse(const std::string& text) {
  auto held = std::make_shared<std::vector<std::byte>>(text.size());
  if (!text.empty()) std::memcpy(held->data(), text.data(), text.size());
  return File::parse(std::span<const std::byte>(held->data(), held->size()), held);
}

}  // namespace ctk::graph::gguf::test
