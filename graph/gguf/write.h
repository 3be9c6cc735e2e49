// Writes GGUF version 3. The head (metadata, tensor table) is built in memory, tensor bytes are streamed.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/gguf/container.h"

namespace ctk::graph::gguf {

inline constexpr std::uint64_t kWrittenAlignment = 32;

// Keys in the order they are set; each once.
class Metadata {
 public:
  void set_u32(std::string_view key, std::uint32_t value);
  void set_f32(std::string_view key, float value);
  void set_truth(std::string_view key, bool value);
  void set_text(std::string_view key, std::string_view value);
  void set_texts(std::string_view key, std::span<const std::string> values);
  void set_i32s(std::string_view key, std::span<const std::int32_t> values);
  void set_f32s(std::string_view key, std::span<const float> values);
  // A value of another file, byte for byte.
  void copy(std::string_view key, const MetadataValue& value);

  std::uint64_t count() const { return keys_.size(); }
  const std::string& bytes() const { return bytes_; }
  // A key that was set twice; empty when there is none.
  const std::string& repeated() const { return repeated_; }

 private:
  void begin(std::string_view key, ValueType type);

  std::string bytes_, repeated_;
  std::set<std::string, std::less<>> keys_;
};

using Sink = std::function<Status(std::span<const std::byte>)>;

struct TensorToWrite {
  std::string name;
  const BlockType* type = nullptr;
  Shape shape;  // outermost first
  // Hands the tensor's bytes to the sink, in as many pieces as it likes; called once, when its turn has come.
  std::function<Status(const Sink&)> content;

  std::uint64_t bytes() const { return elements(shape) / type->elements * type->bytes; }
};

// Everything in order: head, tensors, padding after each. Errors: those of `content` and `sink`; input (a tensor whose
// rows are no whole blocks, a name twice or too long); internal (content of another length than the shape says).
Status write(const Metadata& metadata, const std::vector<TensorToWrite>& tensors, const Sink& sink);
// The size of what write() would write.
std::uint64_t written_bytes(const Metadata& metadata, const std::vector<TensorToWrite>& tensors);
// To a file, which appears whole or not at all.
Status write_file(const Metadata& metadata, const std::vector<TensorToWrite>& tensors, const std::string& path);

}  // namespace ctk::graph::gguf
