#include "graph/gguf/write.h"

#include <cstring>

#include "core/file.h"
#include "core/printable.h"

namespace ctk::graph::gguf {
namespace {

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_string(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint64_t>(text.size()));
  bytes += text;
}

template <class T>
void put_array(std::string& bytes, ValueType type, std::span<const T> values) {
  put(bytes, static_cast<std::uint32_t>(type));
  put(bytes, static_cast<std::uint64_t>(values.size()));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

std::uint64_t aligned(std::uint64_t size) {
  return (size + kWrittenAlignment - 1) / kWrittenAlignment * kWrittenAlignment;
}

// Everything before the data, padded.
std::string head_of(const Metadata& metadata, const std::vector<TensorToWrite>& tensors) {
  std::string head = "GGUF";
  put(head, std::uint32_t{3});
  put(head, static_cast<std::uint64_t>(tensors.size()));
  put(head, metadata.count());
  head += metadata.bytes();
  std::uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    put_string(head, tensor.name);
    put(head, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim)
      put(head, static_cast<std::uint64_t>(*dim));
    put(head, tensor.type->id);
    put(head, offset);
    offset += aligned(tensor.bytes());
  }
  head.resize(aligned(head.size()), '\0');
  return head;
}

Status check(const Metadata& metadata, const std::vector<TensorToWrite>& tensors) {
  if (!metadata.repeated().empty()) return internal_error("GGUF key \"" + metadata.repeated() + "\" was set twice");
  std::set<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) {
    const std::string where = "tensor \"" + printable(tensor.name) + "\": ";
    if (tensor.name.empty() || tensor.name.size() > 64 || !names.insert(tensor.name).second) {
      return input_error(where + "expected a name of 1 to 64 bytes that no other tensor has, found " +
                         std::to_string(tensor.name.size()) + " bytes. Rename the layer");
    }
    const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (tensor.shape.size() > 4 || elements(tensor.shape) == 0 ||
        row % static_cast<std::int64_t>(tensor.type->elements) != 0) {
      return input_error(where + "expected at most 4 dimensions and rows of whole " + std::string(tensor.type->name) +
                         " blocks of " + std::to_string(tensor.type->elements) + ", found shape " +
                         to_string(tensor.shape) + ". Choose another scheme for the layer");
    }
  }
  return {};
}

}  // namespace

void Metadata::begin(std::string_view key, ValueType type) {
  if (!keys_.emplace(key).second) repeated_ = key;
  put_string(bytes_, key);
  put(bytes_, static_cast<std::uint32_t>(type));
}

void Metadata::set_u32(std::string_view key, std::uint32_t value) {
  begin(key, ValueType::u32);
  put(bytes_, value);
}

void Metadata::set_f32(std::string_view key, float value) {
  begin(key, ValueType::f32);
  put(bytes_, value);
}

void Metadata::set_truth(std::string_view key, bool value) {
  begin(key, ValueType::boolean);
  put(bytes_, static_cast<std::uint8_t>(value ? 1 : 0));
}

void Metadata::set_text(std::string_view key, std::string_view value) {
  begin(key, ValueType::string);
  put_string(bytes_, value);
}

void Metadata::set_texts(std::string_view key, std::span<const std::string> values) {
  begin(key, ValueType::array);
  put(bytes_, static_cast<std::uint32_t>(ValueType::string));
  put(bytes_, static_cast<std::uint64_t>(values.size()));
  for (const std::string& value : values) put_string(bytes_, value);
}

void Metadata::set_i32s(std::string_view key, std::span<const std::int32_t> values) {
  begin(key, ValueType::array);
  put_array(bytes_, ValueType::i32, values);
}

void Metadata::set_f32s(std::string_view key, std::span<const float> values) {
  begin(key, ValueType::array);
  put_array(bytes_, ValueType::f32, values);
}

void Metadata::copy(std::string_view key, const MetadataValue& value) {
  begin(key, value.type);
  if (value.type == ValueType::string) put(bytes_, static_cast<std::uint64_t>(value.bytes.size()));
  if (value.type == ValueType::array) {
    put(bytes_, static_cast<std::uint32_t>(value.element_type));
    put(bytes_, value.count);
  }
  bytes_.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

Status write(const Metadata& metadata, const std::vector<TensorToWrite>& tensors, const Sink& sink) {
  CTK_CHECK(check(metadata, tensors));
  const std::string head = head_of(metadata, tensors);
  CTK_CHECK(sink(std::as_bytes(std::span(head))));
  for (const TensorToWrite& tensor : tensors) {
    std::uint64_t written = 0;
    CTK_CHECK(tensor.content([&](std::span<const std::byte> piece) {
      written += piece.size();
      return sink(piece);
    }));
    if (written != tensor.bytes()) {
      return internal_error("tensor \"" + printable(tensor.name) + "\": expected " + std::to_string(tensor.bytes()) +
                            " bytes to write, found " + std::to_string(written));
    }
    static constexpr std::byte kPadding[kWrittenAlignment] = {};
    CTK_CHECK(sink(std::span(kPadding).first(aligned(written) - written)));
  }
  return {};
}

std::uint64_t written_bytes(const Metadata& metadata, const std::vector<TensorToWrite>& tensors) {
  std::uint64_t size = head_of(metadata, tensors).size();
  for (const TensorToWrite& tensor : tensors) size += aligned(tensor.bytes());
  return size;
}

Status write_file(const Metadata& metadata, const std::vector<TensorToWrite>& tensors, const std::string& path) {
  CTK_TRY(FileWriter writer, FileWriter::create(path));
  CTK_CHECK(write(metadata, tensors, [&](std::span<const std::byte> piece) { return writer.append(piece); }));
  return writer.commit();
}

}  // namespace ctk::graph::gguf
