// The checks of a GGUF file, front to back.
#include <algorithm>
#include <cstring>

#include "core/printable.h"
#include "graph/gguf/container.h"

namespace ctk::graph::gguf {
namespace {

constexpr std::size_t kDeepestArray = 8;
constexpr std::uint64_t kLongestKey = 65535, kLongestTensorName = 64, kMostDims = 4;  // of the format
constexpr std::string_view kRemedy = ". The file is damaged, cut off or written by a faulty tool: get it again";

// Bytes of a value type with a fixed size; 0 for strings and arrays.
std::size_t fixed_bytes(ValueType type) {
  static constexpr std::size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<std::size_t>(type)];
}

// Reads what lies at a place and moves on; every length is compared with what is left.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::size_t at) : bytes_(bytes), at_(at) {}
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

  Result<std::span<const std::byte>> take(std::uint64_t length, const char* what) {
    if (length > left()) {
      return input_error("byte " + std::to_string(at_) + ": expected " + std::to_string(length) + " bytes of " + what +
                         ", found " + std::to_string(left()) + " before the end of the file" + std::string(kRemedy));
    }
    const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(length));
    at_ += taken.size();
    return taken;
  }

  template <class T>
  Result<T> number(const char* what) {
    CTK_TRY(const auto taken, take(sizeof(T), what));
    T value;
    std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }

  Result<std::string_view> string(const char* what) {
    CTK_TRY(const std::uint64_t length, number<std::uint64_t>(what));
    CTK_TRY(const auto taken, take(length, what));
    return std::string_view(reinterpret_cast<const char*>(taken.data()), taken.size());
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_;
};

Result<ValueType> read_type(Cursor& cursor) {
  CTK_TRY(const std::uint32_t id, cursor.number<std::uint32_t>("a value type"));
  if (id > static_cast<std::uint32_t>(ValueType::f64)) {
    return input_error("expected a value type of 0..12, found " + std::to_string(id) + std::string(kRemedy));
  }
  return static_cast<ValueType>(id);
}

Result<MetadataValue> read_value(Cursor& cursor, std::span<const std::byte> file, ValueType type, std::size_t depth);

// Checks the elements and leaves them where they are. Each has a least size, so a count is bounded before the walk.
Result<MetadataValue> read_array(Cursor& cursor, std::span<const std::byte> file, std::size_t depth) {
  if (depth > kDeepestArray) {
    return input_error("expected arrays nested at most " + std::to_string(kDeepestArray) + " deep, found more" +
                       std::string(kRemedy));
  }
  MetadataValue array;
  array.type = ValueType::array;
  CTK_TRY(array.element_type, read_type(cursor));
  CTK_TRY(array.count, cursor.number<std::uint64_t>("an array's count"));
  const std::size_t size = fixed_bytes(array.element_type);
  const std::size_t least = size != 0 ? size : array.element_type == ValueType::string ? 8 : 12;
  if (array.count > cursor.left() / least) {
    return input_error("expected at most " + std::to_string(cursor.left() / least) + " elements in the " +
                       std::to_string(cursor.left()) + " bytes that are left, found a count of " +
                       std::to_string(array.count) + std::string(kRemedy));
  }
  const std::size_t begin = cursor.at();
  if (size != 0 && array.element_type != ValueType::boolean) {
    CTK_CHECK(cursor.take(array.count * size, "an array"));
  } else {
    for (std::uint64_t i = 0; i < array.count; ++i) CTK_CHECK(read_value(cursor, file, array.element_type, depth + 1));
  }
  array.bytes = file.subspan(begin, cursor.at() - begin);
  return array;
}

Result<MetadataValue> read_value(Cursor& cursor, std::span<const std::byte> file, ValueType type, std::size_t depth) {
  if (type == ValueType::array) return read_array(cursor, file, depth);
  MetadataValue value;
  value.type = type;
  if (type == ValueType::string) {
    CTK_TRY(const std::string_view text, cursor.string("a string"));
    value.bytes = std::as_bytes(std::span(text));
    return value;
  }
  CTK_TRY(value.bytes, cursor.take(fixed_bytes(type), "a value"));
  if (type == ValueType::boolean && static_cast<std::uint8_t>(value.bytes[0]) > 1) {
    return input_error("expected a bool of 0 or 1, found " + std::to_string(static_cast<std::uint8_t>(value.bytes[0])) +
                       std::string(kRemedy));
  }
  return value;
}

struct PlacedTensor {
  std::uint64_t begin = 0, end = 0;
  std::size_t index = 0;
};

}  // namespace

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) : bytes_(bytes), cursor_(bytes, 0) {
    file_.owner_ = std::move(owner);
  }

  Result<File> run() {
    CTK_CHECK(read_header());
    for (std::uint64_t i = 0; i < key_count_; ++i) {
      const std::string where = "key " + std::to_string(i);
      if (auto read = read_key(); !read) return std::move(read).error().with_context(where);
    }
    CTK_CHECK(read_alignment());
    for (std::uint64_t i = 0; i < tensor_count_; ++i) {
      const std::string where = "tensor " + std::to_string(i);
      if (auto read = read_tensor(); !read) return std::move(read).error().with_context(where);
    }
    CTK_CHECK(place_tensors());
    return std::move(file_);
  }

 private:
  Status read_header() {
    if (!is_gguf(bytes_)) {
      return input_error(
          "expected a file that starts with \"GGUF\", found \"" +
          printable({reinterpret_cast<const char*>(bytes_.data()), std::min<std::size_t>(4, bytes_.size())}) +
          "\". Give a GGUF file");
    }
    CTK_CHECK(cursor_.take(4, "magic"));
    CTK_TRY(file_.version_, cursor_.number<std::uint32_t>("the version"));
    if (file_.version_ != 2 && file_.version_ != 3) {
      const bool is_swapped = file_.version_ == 0x02000000u || file_.version_ == 0x03000000u;
      return input_error("expected GGUF version 2 or 3, found " +
                         (is_swapped ? "a big-endian file" : std::to_string(file_.version_)) +
                         ". Convert the model to GGUF again with a current tool");
    }
    CTK_TRY(tensor_count_, cursor_.number<std::uint64_t>("the tensor count"));
    CTK_TRY(key_count_, cursor_.number<std::uint64_t>("the key count"));
    // A key takes 13 bytes at least, a tensor 24.
    if (key_count_ > cursor_.left() / 13 || tensor_count_ > (cursor_.left() - 13 * key_count_) / 24) {
      return input_error("header: expected counts that fit a file of " + std::to_string(bytes_.size()) +
                         " bytes, found " + std::to_string(key_count_) + " keys and " + std::to_string(tensor_count_) +
                         " tensors" + std::string(kRemedy));
    }
    return {};
  }

  Status read_key() {
    CTK_TRY(const std::string_view key, cursor_.string("a key"));
    if (key.empty() || key.size() > kLongestKey) {
      return input_error("expected a name of 1 to 65535 bytes, found " + std::to_string(key.size()) +
                         std::string(kRemedy));
    }
    const std::string where = "\"" + printable(key) + "\"";
    auto type = read_type(cursor_);
    if (!type) return std::move(type).error().with_context(where);
    auto value = read_value(cursor_, bytes_, *type, 1);
    if (!value) return std::move(value).error().with_context(where);
    if (!file_.values_.emplace(key, *value).second) {
      return input_error(where + ": expected every key once, found it twice" + std::string(kRemedy));
    }
    file_.keys_.push_back(key);
    return {};
  }

  Status read_alignment() {
    constexpr std::string_view kKey = "general.alignment";
    const MetadataValue* value = file_.find(kKey);
    if (value == nullptr) return {};
    CTK_TRY(file_.alignment_, file_.integer(kKey));
    const std::uint64_t found = file_.alignment_;
    if (value->type != ValueType::u32 || found == 0 || (found & (found - 1)) != 0) {
      return input_error("key \"general.alignment\": expected a u32 power of two, found " +
                         std::string(name_of(value->type)) + " " + std::to_string(found) + std::string(kRemedy));
    }
    return {};
  }

  Status read_tensor() {
    CTK_TRY(const std::string_view name, cursor_.string("a tensor name"));
    if (name.empty() || name.size() > kLongestTensorName) {
      return input_error("expected a name of 1 to 64 bytes, found " + std::to_string(name.size()) +
                         std::string(kRemedy));
    }
    TensorInfo tensor;
    tensor.name = name;
    if (auto read = read_form(tensor); !read)
      return std::move(read).error().with_context("\"" + printable(name) + "\"");
    if (!file_.tensor_index_.emplace(name, file_.tensors_.size()).second) {
      return input_error("\"" + printable(name) + "\": expected every tensor once, found it twice" +
                         std::string(kRemedy));
    }
    file_.tensors_.push_back(std::move(tensor));
    return {};
  }

  Status read_form(TensorInfo& tensor) {
    CTK_TRY(const std::uint32_t rank, cursor_.number<std::uint32_t>("a tensor's dimension count"));
    if (rank > kMostDims) {
      return input_error("expected at most 4 dimensions, found " + std::to_string(rank) + std::string(kRemedy));
    }
    for (std::uint32_t d = 0; d < rank; ++d) {
      CTK_TRY(const std::uint64_t dim, cursor_.number<std::uint64_t>("a dimension"));
      if (dim == 0 || dim > std::uint64_t{1} << 48) {
        return input_error("expected dimensions of 1 to 2^48, found " + std::to_string(dim) + std::string(kRemedy));
      }
      tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(dim));
    }
    CTK_TRY(const std::uint32_t id, cursor_.number<std::uint32_t>("a tensor's type"));
    CTK_TRY(const std::uint64_t offset, cursor_.number<std::uint64_t>("a tensor's offset"));
    tensor.type = find_block_type(id);
    if (tensor.type == nullptr) {
      return input_error("expected a known block type (" + readable_block_types() + "), found type " +
                         std::to_string(id) + ". Convert the file to one of these");
    }
    CTK_TRY(const std::size_t count, element_count(tensor.shape));
    const std::uint64_t row = rank == 0 ? 1 : static_cast<std::uint64_t>(tensor.shape.back());
    if (row % tensor.type->elements != 0) {
      return input_error("expected rows of whole " + std::string(tensor.type->name) + " blocks of " +
                         std::to_string(tensor.type->elements) + ", found a row length of " + std::to_string(row) +
                         std::string(kRemedy));
    }
    // Below 2^48 elements at 8 bytes at most: no overflow.
    places_.push_back({offset, count / tensor.type->elements * tensor.type->bytes, file_.tensors_.size()});
    return {};
  }

  // Offsets against the data section and each other. In `places_`, `end` holds the length until here.
  Status place_tensors() {
    const std::uint64_t mask = file_.alignment_ - 1;
    const std::uint64_t data = (static_cast<std::uint64_t>(cursor_.at()) + mask) & ~mask;
    const std::uint64_t room = data < bytes_.size() ? bytes_.size() - data : 0;
    for (PlacedTensor& place : places_) {
      TensorInfo& tensor = file_.tensors_[place.index];
      if (place.begin % file_.alignment_ != 0) {
        return input_error("tensor \"" + printable(tensor.name) + "\": expected an offset that is a multiple of " +
                           std::to_string(file_.alignment_) + ", found " + std::to_string(place.begin) +
                           std::string(kRemedy));
      }
      if (place.begin > room || place.end > room - place.begin) {
        return input_error("tensor \"" + printable(tensor.name) + "\": expected " + std::to_string(place.end) +
                           " bytes at offset " + std::to_string(place.begin) + ", found " + std::to_string(room) +
                           " bytes of data" + std::string(kRemedy));
      }
      tensor.bytes = bytes_.subspan(data + place.begin, place.end);
      place.end += place.begin;
    }
    std::ranges::sort(places_, {}, &PlacedTensor::begin);
    for (std::size_t i = 1; i < places_.size(); ++i) {
      if (places_[i].begin >= places_[i - 1].end) continue;
      return input_error("tensors \"" + printable(file_.tensors_[places_[i - 1].index].name) + "\" and \"" +
                         printable(file_.tensors_[places_[i].index].name) + "\": expected places of their own, found " +
                         "that they overlap at offset " + std::to_string(places_[i].begin) + std::string(kRemedy));
    }
    return {};
  }

  std::span<const std::byte> bytes_;
  Cursor cursor_;
  File file_;
  std::uint64_t tensor_count_ = 0, key_count_ = 0;
  std::vector<PlacedTensor> places_;
};

Result<File> File::parse(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  return Parser(bytes, std::move(owner)).run();
}

std::vector<MetadataValue> nested(const MetadataValue& array) {
  std::vector<MetadataValue> out;
  if (array.type != ValueType::array || array.element_type != ValueType::array) return out;
  Cursor cursor(array.bytes, 0);
  for (std::uint64_t i = 0; i < array.count; ++i) {
    auto element = read_array(cursor, array.bytes, 1);
    if (!element) break;  // cannot be: the structure was checked when the file was read
    out.push_back(*element);
  }
  return out;
}

}  // namespace ctk::graph::gguf
