#include "graph/gguf/container.h"

#include <cstring>

#include "core/file.h"
#include "core/printable.h"

namespace ctk::graph::gguf {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Calls body(T) with the C++ type of a numeric value type; false for strings, arrays and truth values.
template <class Body>
bool with_number(ValueType type, Body&& body) {
  switch (type) {
    case ValueType::u8:
      body(std::uint8_t{});
      return true;
    case ValueType::i8:
      body(std::int8_t{});
      return true;
    case ValueType::u16:
      body(std::uint16_t{});
      return true;
    case ValueType::i16:
      body(std::int16_t{});
      return true;
    case ValueType::u32:
      body(std::uint32_t{});
      return true;
    case ValueType::i32:
      body(std::int32_t{});
      return true;
    case ValueType::u64:
      body(std::uint64_t{});
      return true;
    case ValueType::i64:
      body(std::int64_t{});
      return true;
    case ValueType::f32:
      body(float{});
      return true;
    case ValueType::f64:
      body(double{});
      return true;
    default:
      return false;
  }
}

bool is_integer(ValueType type) {
  return type != ValueType::f32 && type != ValueType::f64 && type != ValueType::boolean && type != ValueType::string &&
         type != ValueType::array;
}
bool is_real(ValueType type) {
  return type == ValueType::f32 || type == ValueType::f64;
}

std::string spelled(const MetadataValue& value) {
  if (value.type != ValueType::array) return std::string(name_of(value.type));
  return "an array of " + std::to_string(value.count) + " " + std::string(name_of(value.element_type));
}

Error wrong_type(std::string_view key, std::string_view expected, const std::string& found) {
  return input_error("key \"" + printable(key) + "\": expected " + std::string(expected) + ", found " + found +
                     ". Convert the model to GGUF again");
}

template <class Target>
std::vector<Target> converted(const MetadataValue& array) {
  std::vector<Target> out;
  out.reserve(array.count);
  with_number(array.element_type, [&](auto kind) {
    using Source = decltype(kind);
    for (std::uint64_t i = 0; i < array.count; ++i)
      out.push_back(static_cast<Target>(load<Source>(array.bytes.data() + i * sizeof(Source))));
  });
  return out;
}

}  // namespace

std::string_view name_of(ValueType type) {
  static constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

bool is_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
}

Result<File> File::open(const std::string& path) {
  CTK_TRY(const MappedFile mapped, MappedFile::open(path));
  auto file = parse(mapped.bytes(), mapped.owner());
  if (!file) return std::move(file).error().with_context(path);
  return file;
}

const MetadataValue* File::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const TensorInfo* File::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

Result<const MetadataValue*> File::require(std::string_view key, std::string_view expected, bool is_array) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return wrong_type(key, expected, "no such key");
  if ((value->type == ValueType::array) != is_array) return wrong_type(key, expected, spelled(*value));
  return value;
}

Result<std::uint64_t> File::integer(std::string_view key) const {
  constexpr std::string_view kExpected = "an integer of at least 0";
  CTK_TRY(const MetadataValue* value, require(key, kExpected, false));
  if (!is_integer(value->type)) return wrong_type(key, kExpected, spelled(*value));
  std::uint64_t bits = 0;
  bool is_negative = false;
  with_number(value->type, [&](auto kind) {
    const auto number = load<decltype(kind)>(value->bytes.data());
    is_negative = number < decltype(kind){};
    bits = static_cast<std::uint64_t>(number);
  });
  if (is_negative) return wrong_type(key, kExpected, std::to_string(static_cast<std::int64_t>(bits)));
  return bits;
}

Result<double> File::real(std::string_view key) const {
  CTK_TRY(const MetadataValue* value, require(key, "a number", false));
  double number = 0;
  const bool known = with_number(
      value->type, [&](auto kind) { number = static_cast<double>(load<decltype(kind)>(value->bytes.data())); });
  if (!known) return wrong_type(key, "a number", spelled(*value));
  return number;
}

Result<bool> File::truth(std::string_view key) const {
  CTK_TRY(const MetadataValue* value, require(key, "a bool", false));
  if (value->type != ValueType::boolean) return wrong_type(key, "a bool", spelled(*value));
  return value->bytes[0] != std::byte{0};
}

Result<std::string_view> File::text(std::string_view key) const {
  CTK_TRY(const MetadataValue* value, require(key, "a string", false));
  if (value->type != ValueType::string) return wrong_type(key, "a string", spelled(*value));
  return std::string_view(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

Result<std::vector<std::string_view>> File::texts(std::string_view key) const {
  CTK_TRY(const MetadataValue* value, require(key, "an array of string", true));
  if (value->element_type != ValueType::string) return wrong_type(key, "an array of string", spelled(*value));
  std::vector<std::string_view> out;
  out.reserve(value->count);
  const std::byte* at = value->bytes.data();
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const std::uint64_t length = load<std::uint64_t>(at);
    out.emplace_back(reinterpret_cast<const char*>(at + 8), length);
    at += 8 + length;
  }
  return out;
}

Result<std::vector<std::int64_t>> File::integers(std::string_view key) const {
  CTK_TRY(const MetadataValue* value, require(key, "an array of integers", true));
  if (!is_integer(value->element_type)) return wrong_type(key, "an array of integers", spelled(*value));
  return converted<std::int64_t>(*value);
}

Result<std::vector<float>> File::reals(std::string_view key) const {
  CTK_TRY(const MetadataValue* value, require(key, "an array of f32 or f64", true));
  if (!is_real(value->element_type)) return wrong_type(key, "an array of f32 or f64", spelled(*value));
  return converted<float>(*value);
}

Result<Tensor> File::floats(const TensorInfo& tensor) const {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % alignof(float) == 0;
  if (tensor.type->name == "F32" && is_aligned && !tensor.bytes.empty())
    return Tensor::borrowed(DType::f32, tensor.shape, tensor.bytes.data(), owner_);
  auto decoded = dequantize(*tensor.type, tensor.shape, tensor.bytes);
  if (!decoded) return std::move(decoded).error().with_context("tensor \"" + printable(tensor.name) + "\"");
  return decoded;
}

}  // namespace ctk::graph::gguf
