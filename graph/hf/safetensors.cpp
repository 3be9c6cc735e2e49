#include "graph/hf/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/printable.h"
#include "graph/hf/json.h"

namespace ctk::graph::hf {
namespace {

using ctk::to_string;
using nlohmann::json;

// The format's own bound; a header of a thousand tensors takes some 100 kB.
constexpr std::size_t kLargestHeader = 100'000'000;
constexpr std::size_t kHeaderDepth = 3;  // file, tensor, list
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kLargestRank = 32;

struct TypeRow {
  std::string_view name;
  std::size_t bytes;
  std::optional<DType> dtype;
};
constexpr std::array<TypeRow, 15> kTypes{{
    {"BOOL", 1, DType::boolean},
    {"U8", 1, DType::u8},
    {"I8", 1, DType::i8},
    {"F8_E5M2", 1, std::nullopt},
    {"F8_E4M3", 1, std::nullopt},
    {"I16", 2, DType::i16},
    {"U16", 2, DType::u16},
    {"F16", 2, DType::f16},
    {"BF16", 2, DType::bf16},
    {"I32", 4, DType::i32},
    {"U32", 4, DType::u32},
    {"F32", 4, DType::f32},
    {"I64", 8, DType::i64},
    {"U64", 8, DType::u64},
    {"F64", 8, DType::f64},
}};

Error bad_header(const std::string& expected, const std::string& found) {
  return input_error("header: expected " + expected + ", found " + found + ". Download the file again");
}

Result<std::string_view> header_text(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) {
    return bad_header("at least 8 bytes", "a file of " + std::to_string(bytes.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  if (length > kLargestHeader) {
    return bad_header("a length of at most " + std::to_string(kLargestHeader), std::to_string(length));
  }
  if (length < 2 || length > bytes.size() - kLengthBytes) {
    return bad_header("a length from 2 to " + std::to_string(bytes.size() - kLengthBytes) + ", what the file has left",
                      std::to_string(length));
  }
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, static_cast<std::size_t>(length));
}

Error bad_field(const std::string& field, const std::string& expected, const std::string& found) {
  return input_error(field + ": expected " + expected + ", found " + found + ". Download the file again");
}

Result<Shape> read_shape(const json& field) {
  const std::string expected = "a list of at most 32 sizes";
  if (!field.is_array() || field.size() > kLargestRank) return bad_field("shape", expected, shown(field));
  Shape shape;
  for (const json& size : field) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > (std::uint64_t{1} << 48)) {
      return bad_field("shape", expected, shown(field));
    }
    shape.push_back(size.get<std::int64_t>());
  }
  return shape;
}

// One entry of the header; `room`: bytes behind the header.
Result<StoredTensor> read_entry(const json& entry, std::size_t room) {
  if (!entry.is_object()) return input_error("expected dtype, shape and data_offsets, found " + shown(entry));
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!entry.contains(key)) return bad_field(key, "a value", "none");
  }
  if (entry.size() != 3) return bad_field("keys", "dtype, shape and data_offsets alone", shown(entry));
  StoredTensor stored;
  const json& type = entry["dtype"];
  const auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& known) {
    return type.is_string() && type.get_ref<const std::string&>() == known.name;
  });
  if (row == kTypes.end()) return bad_field("dtype", "a type of safetensors (F32, F16, BF16, ...)", shown(type));
  stored.type = row->name;
  stored.dtype = row->dtype;
  CTK_TRY(stored.shape, read_shape(entry["shape"]));
  // Empty dimensions count as 1 here, so that no stride overflows either.
  Shape widest = stored.shape;
  for (std::int64_t& size : widest) size = std::max<std::int64_t>(size, 1);
  if (auto fits = element_count(widest); !fits) return std::move(fits).error().with_context("shape");
  CTK_TRY(const std::size_t count, element_count(stored.shape));
  const json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return bad_field("data_offsets", "two unsigned numbers", shown(offsets));
  }
  const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > room) {
    return bad_field("data_offsets", "begin <= end <= " + std::to_string(room) + ", the bytes behind the header",
                     shown(offsets));
  }
  stored.begin = static_cast<std::size_t>(begin);
  stored.bytes = static_cast<std::size_t>(end - begin);
  if (count * row->bytes != stored.bytes) {
    return bad_field("data_offsets",
                     std::to_string(count * row->bytes) + " bytes for " + stored.type + " " + to_string(stored.shape),
                     std::to_string(stored.bytes));
  }
  return stored;
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result;
  result.path_ = path;
  CTK_TRY(result.file_, MappedFile::open(path));
  const auto read = [&]() -> Status {
    CTK_TRY(const std::string_view text, header_text(result.file_.bytes()));
    auto header = parse_json(text, kHeaderDepth);
    if (!header) return std::move(header).error().with_context("header");
    const std::size_t start = kLengthBytes + text.size(), room = result.file_.bytes().size() - start;
    std::vector<std::pair<std::size_t, const std::string*>> begins;
    for (const auto& [name, entry] : header->items()) {
      if (name == "__metadata__") continue;
      auto stored = read_entry(entry, room);
      if (!stored) return std::move(stored).error().with_context("tensor \"" + printable(name) + "\"");
      const auto added = result.tensors_.emplace(name, std::move(*stored)).first;
      if (added->second.bytes != 0) begins.emplace_back(added->second.begin, &added->first);
    }
    std::sort(begins.begin(), begins.end());
    std::size_t end = 0;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      if (begins[i].first < end) {
        return input_error("tensor \"" + printable(*begins[i].second) +
                           "\": expected bytes of its own, found them inside \"" + printable(*begins[i - 1].second) +
                           "\". Download the file again");
      }
      end = begins[i].first + result.tensors_.find(*begins[i].second)->second.bytes;
    }
    for (auto& [name, stored] : result.tensors_) stored.begin += start;
    return {};
  };
  if (auto status = read(); !status) return std::move(status).error().with_context(path);
  return result;
}

Result<Tensor> SafetensorsFile::tensor(const std::string& name) const {
  const StoredTensor& stored = tensors_.find(name)->second;
  if (!stored.dtype) {
    return input_error(path_ + ": tensor \"" + printable(name) + "\": expected a type we compute with, found " +
                       stored.type + ". Convert the checkpoint to bfloat16");
  }
  if (stored.bytes == 0) return Tensor::zeros(*stored.dtype, stored.shape);
  const std::byte* data = file_.bytes().data() + stored.begin;
  const auto alignment = static_cast<std::size_t>(bits_of(*stored.dtype)) / 8;
  if (reinterpret_cast<std::uintptr_t>(data) % alignment == 0) {
    return Tensor::borrowed(*stored.dtype, stored.shape, data, file_.owner());
  }
  CTK_TRY(Tensor copy, Tensor::zeros(*stored.dtype, stored.shape));
  std::memcpy(copy.mutable_data(), data, stored.bytes);
  return copy;
}

}  // namespace ctk::graph::hf
