#include "data/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace ctk::data {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxStringItem = 4096;  // bytes of one element of a string array

// The header's dict: three known keys, each once, in any order. Grammar: {'key': value, ...} with optional spaces.
class DictParser {
 public:
  explicit DictParser(std::string_view text) : rest_(text) {}

  bool parse(NpyHeader& out) {
    if (!take("{")) return false;
    bool has_descr = false, has_order = false, has_shape = false;
    while (!take("}")) {
      std::string key;
      if (!string(key) || !take(":")) return false;
      if (key == "descr" && !has_descr) {
        has_descr = true;
        if (peek('[')) {
          out.descr = "struct";
          return true;  // the caller refuses it by this name
        }
        if (!string(out.descr)) return false;
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        out.is_fortran = take("True");
        if (!out.is_fortran && !take("False")) return false;
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        if (!tuple(out.shape)) return false;
      } else {
        return false;
      }
      if (!take(",") && !peek('}')) return false;
    }
    return has_descr && has_order && has_shape;
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool peek(char c) {
    skip_spaces();
    return !rest_.empty() && rest_[0] == c;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  bool string(std::string& out) {
    skip_spaces();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return false;
    out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool tuple(Shape& out) {
    if (!take("(")) return false;
    while (!take(")")) {
      skip_spaces();
      std::int64_t dimension = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dimension);
      if (error != std::errc() || dimension < 0 || out.size() == 32) return false;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      out.push_back(dimension);
      if (!take(",") && !peek(')')) return false;
    }
    return true;
  }

  std::string_view rest_;
};

// Splits a descr such as "<f4" into type, size and byte order.
Status read_descr(NpyHeader& header, const std::string& where) {
  const std::string& descr = header.descr;
  const std::string found = ": expected an array of real numbers, found dtype '" + descr + "'";
  if (descr.size() >= 2 && descr[1] == 'O')
    return input_error(where + found +
                       " (pickled Python objects, which are refused: they can run code). Save numbers of one shape.");
  unsigned size = 0;
  if (descr.size() < 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos ||
      std::from_chars(descr.data() + 2, descr.data() + descr.size(), size).ptr != descr.data() + descr.size())
    return input_error(where + found + ". Save a plain array of numbers.");
  const char kind = descr[1];
  if (kind == 'U' || kind == 'S') {
    if (size == 0 || size > kMaxStringItem / 4)
      return input_error(where + found + ", too short or too long for names. Save short strings.");
    header.item_bytes = kind == 'U' ? std::size_t{4} * size : size;
    header.is_swapped = descr[0] == '>' && kind == 'U';
    return {};
  }
  static constexpr struct {
    char kind;
    unsigned size;
    DType dtype;
  } kTypes[] = {{'b', 1, DType::boolean}, {'u', 1, DType::u8},  {'i', 1, DType::i8},  {'u', 2, DType::u16},
                {'i', 2, DType::i16},     {'u', 4, DType::u32}, {'i', 4, DType::i32}, {'u', 8, DType::u64},
                {'i', 8, DType::i64},     {'f', 2, DType::f16}, {'f', 4, DType::f32}, {'f', 8, DType::f64}};
  for (const auto& type : kTypes)
    if (type.kind == kind && type.size == size) header.dtype = type.dtype;
  if (!header.dtype) return input_error(where + found + ". Save it as float32 or as integers.");
  header.item_bytes = size;
  header.is_swapped = descr[0] == '>' && size > 1;
  return {};
}

// Copies elements into row-major order, reversing the bytes of each where `swapped`.
void copy_elements(const NpyHeader& header, const std::byte* from, std::byte* to) {
  const std::size_t item = header.item_bytes, count = elements(header.shape);
  std::vector<std::size_t> strides(header.shape.size());  // elements, of the stored array
  std::size_t step = 1;
  for (std::size_t k = 0; k < strides.size(); ++k) {
    const std::size_t axis = header.is_fortran ? k : strides.size() - 1 - k;
    strides[axis] = step;
    step *= static_cast<std::size_t>(header.shape[axis]);
  }
  std::vector<std::int64_t> at(header.shape.size(), 0);
  std::size_t source = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (header.is_swapped)
      std::reverse_copy(from + source * item, from + (source + 1) * item, to + i * item);
    else
      std::memcpy(to + i * item, from + source * item, item);
    for (std::size_t axis = at.size(); axis-- > 0;) {
      source += strides[axis];
      if (++at[axis] < header.shape[axis]) break;
      source -= strides[axis] * static_cast<std::size_t>(header.shape[axis]);
      at[axis] = 0;
    }
  }
}

// Elements of a 'U' (UCS-4) or 'S' (bytes) array as text; characters past ASCII become '?'.
std::vector<std::string> read_strings(const NpyHeader& header, const std::byte* data) {
  const bool wide = header.descr[1] == 'U';
  const std::size_t width = wide ? 4 : 1;
  std::vector<std::string> strings(elements(header.shape));
  for (std::size_t i = 0; i < strings.size(); ++i)
    for (std::size_t c = 0; c < header.item_bytes; c += width) {
      const std::byte* unit = data + i * header.item_bytes + c;
      std::uint32_t code = 0;
      for (std::size_t b = 0; b < width; ++b)
        code |= static_cast<std::uint32_t>(unit[header.is_swapped ? width - 1 - b : b]) << (8 * b);
      if (code == 0) break;
      strings[i] += code < 128 ? static_cast<char>(code) : '?';
    }
  return strings;
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const std::byte> head, std::uint64_t total_bytes,
                                   const std::string& where) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (!text.starts_with(kMagic) || text.size() < 12)
    return input_error(where + ": expected a NumPy array (.npy), found " +
                       (total_bytes == 0 ? "no bytes" : "bytes that are none") +
                       ". Save it with numpy.save or numpy.savez.");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
  const std::size_t version = byte(6);
  const Error damaged =
      input_error(where + ": the .npy header is damaged or of an unknown form. Save the array again.");
  if (version < 1 || version > 3) return damaged;
  NpyHeader header;
  const std::size_t prefix = version == 1 ? 10 : 12;
  const std::size_t length =
      version == 1 ? byte(8) + (byte(9) << 8) : byte(8) + (byte(9) << 8) + (byte(10) << 16) + (byte(11) << 24);
  header.data_offset = prefix + length;
  if (header.data_offset > text.size() || !DictParser(text.substr(prefix, length)).parse(header)) return damaged;
  CTK_CHECK(read_descr(header, where));
  const Result<std::size_t> count = element_count(header.shape);
  const std::uint64_t present = total_bytes - header.data_offset;
  if (!count || *count != present / header.item_bytes || present % header.item_bytes != 0)
    return input_error(where + ": the header says shape " + to_string(header.shape) + " of '" + header.descr +
                       "', the file holds " + std::to_string(present) +
                       " bytes of elements: it is truncated or damaged. " + "Save the array again.");
  return header;
}

Result<NpyArray> load_npy(const NpyHeader& header, const Bytes& file, const std::string& where) {
  NpyArray array;
  array.shape = header.shape;
  const std::byte* data = file.bytes.data() + header.data_offset;
  if (!header.dtype) {
    array.strings = read_strings(header, data);
    return array;
  }
  const bool is_plain = !header.is_swapped && (!header.is_fortran || header.shape.size() < 2);
  if (is_plain && reinterpret_cast<std::uintptr_t>(data) % header.item_bytes == 0) {
    array.values = Tensor::borrowed(*header.dtype, header.shape, data, file.owner);
    return array;
  }
  Result<Tensor> copy = Tensor::zeros(*header.dtype, header.shape);
  if (!copy) return std::move(copy).error().with_context(where);
  copy_elements(header, data, static_cast<std::byte*>(copy->mutable_data()));
  array.values = std::move(*copy);
  return array;
}

}  // namespace ctk::data
