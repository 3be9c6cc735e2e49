// The GGUF container, versions 2 and 3, little-endian:
//
//     "GGUF" | version u32 | tensor count u64 | key count u64
//     key count x:    name string | value type u32 | value         string: length u64 | bytes
//     tensor count x: name string | dims u32 | dims x u64, row length first | block type u32 | offset u64
//     padding to `general.alignment` (32) | data, each tensor at its offset from here, a multiple of the alignment
//
// A value of type array is: element type u32 | count u64 | elements; elements may be arrays. Nothing the file says is
// believed before it is compared with the bytes that are there, and nothing is allocated by a number of the file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "graph/gguf/blocks.h"

namespace ctk::graph::gguf {

enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
std::string_view name_of(ValueType type);  // "u8", "string", "array"

// A metadata value: a window on the file, whose structure has been checked. Accessors convert on demand.
struct MetadataValue {
  ValueType type = ValueType::u8;
  ValueType element_type = ValueType::u8;  // of an array
  std::uint64_t count = 1;                 // elements of an array
  std::span<const std::byte> bytes;        // the scalar, the text of a string, the elements of an array as they lie
};

struct TensorInfo {
  std::string_view name;
  const BlockType* type = nullptr;
  Shape shape;  // outermost first, as everywhere in this program: the file's order reversed
  std::span<const std::byte> bytes;
};

class File {
 public:
  // Maps the file and checks all of its structure. Errors: input (path, what was expected, the numbers found).
  static Result<File> open(const std::string& path);
  // The same from memory, which `owner` keeps alive.
  static Result<File> parse(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  std::uint32_t version() const { return version_; }
  std::uint64_t alignment() const { return alignment_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // in the order of the file
  const TensorInfo* find_tensor(std::string_view name) const;
  const std::vector<std::string_view>& keys() const { return keys_; }  // in the order of the file
  const MetadataValue* find(std::string_view key) const;               // null: absent
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // A value by its key. Errors: input (absent, of another type, an integer below 0; names the key).
  Result<std::uint64_t> integer(std::string_view key) const;
  Result<double> real(std::string_view key) const;
  Result<bool> truth(std::string_view key) const;
  Result<std::string_view> text(std::string_view key) const;
  Result<std::vector<std::string_view>> texts(std::string_view key) const;
  Result<std::vector<std::int64_t>> integers(std::string_view key) const;
  Result<std::vector<float>> reals(std::string_view key) const;

  // The tensor as float32. F32 data that is aligned for it stays in the mapped file. Errors: input (names the tensor).
  Result<Tensor> floats(const TensorInfo& tensor) const;

 private:
  friend class Parser;
  Result<const MetadataValue*> require(std::string_view key, std::string_view expected, bool is_array) const;

  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = 32;
  std::vector<std::string_view> keys_;
  std::map<std::string_view, MetadataValue> values_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string_view, std::size_t> tensor_index_;
  std::shared_ptr<const void> owner_;
};

bool is_gguf(std::span<const std::byte> bytes);
// The elements of an array of arrays.
std::vector<MetadataValue> nested(const MetadataValue& array);

}  // namespace ctk::graph::gguf
