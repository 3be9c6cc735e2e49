// Tensors and attributes of the text form, read back.
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "graph/text_scan.h"

namespace ctk::graph::text {
namespace {

constexpr std::size_t kMaxAttributeItems = std::size_t{1} << 24;

// A tensor known only by hash: zeros. Past a page they come from an untouched read-only mapping, so that a short text
// that claims a large constant costs address space, not memory.
Result<Tensor> unknown_bytes(DType dtype, const Shape& shape, std::size_t count) {
  constexpr std::size_t kSmall = 4096, kMost = std::size_t{1} << 36;
  const std::size_t bytes = byte_size(dtype, count);
  if (bytes <= kSmall) return Tensor::zeros(dtype, shape);
  if (bytes > kMost)
    return input_error("a constant of " + std::to_string(bytes) + " bytes is past the limit of 64 GiB");
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return input_error("out of memory: a constant of " + std::to_string(bytes) + " bytes");
  std::shared_ptr<const void> owner(memory, [bytes](const void* held) { munmap(const_cast<void*>(held), bytes); });
  return Tensor::borrowed(dtype, shape, memory, std::move(owner));
}

template <class T>
bool store_integer(std::string_view token, void* data, std::size_t i) {
  T value{};
  if (!parse_whole(token, value)) return false;
  static_cast<T*>(data)[i] = value;
  return true;
}

bool store_short_float(std::string_view token, void* data, std::size_t i, std::uint16_t default_nan,
                       std::uint16_t (*encode)(float), float (*decode)(std::uint16_t)) {
  std::uint64_t bits = default_nan;
  if (token != "nan" && !parse_nan_bits(token, 4, bits)) {
    float value = 0;
    if (!parse_float(token, value) || std::isnan(value)) return false;
    bits = encode(value);
  } else if (!std::isnan(decode(static_cast<std::uint16_t>(bits)))) {
    return false;
  }
  static_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(bits);
  return true;
}

bool store_element(std::string_view token, DType dtype, void* data, std::size_t i) {
  switch (dtype) {
    case DType::f32:
      return parse_float(token, static_cast<float*>(data)[i]);
    case DType::f64: {
      double& out = static_cast<double*>(data)[i];
      std::uint64_t bits = 0x7ff8000000000000u;
      if (token == "nan" || parse_nan_bits(token, 16, bits)) {
        out = std::bit_cast<double>(bits);
        return std::isnan(out);
      }
      return parse_whole(token, out) && !std::isnan(out);
    }
    case DType::f16:
      return store_short_float(token, data, i, 0x7e00u, float_to_half, half_to_float);
    case DType::bf16:
      return store_short_float(token, data, i, 0x7fc0u, float_to_bfloat, bfloat_to_float);
    case DType::i8:
      return store_integer<std::int8_t>(token, data, i);
    case DType::u8:
    case DType::boolean:
      return store_integer<std::uint8_t>(token, data, i);
    case DType::i16:
      return store_integer<std::int16_t>(token, data, i);
    case DType::u16:
      return store_integer<std::uint16_t>(token, data, i);
    case DType::i32:
      return store_integer<std::int32_t>(token, data, i);
    case DType::u32:
      return store_integer<std::uint32_t>(token, data, i);
    case DType::i64:
      return store_integer<std::int64_t>(token, data, i);
    case DType::u64:
      return store_integer<std::uint64_t>(token, data, i);
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::i3:
    case DType::i5:
    case DType::i6: {
      int value = 0;
      const int bits = bits_of(dtype);
      const int least = dtype == DType::u4 ? 0 : -(1 << (bits - 1));
      if (!parse_whole(token, value) || value < least || value > least + (1 << bits) - 1) return false;
      store_packed(data, dtype, i, value);
      return true;
    }
    case DType::string:
      return false;
  }
  return false;
}

// "{1, 2}": the elements are read before anything is sized by the shape.
Result<Tensor> parse_elements(Cursor& cursor, DType dtype, const Shape& shape, std::size_t count) {
  std::vector<std::string_view> tokens;
  if (!cursor.take('}')) {
    do {
      tokens.push_back(cursor.number_token());
    } while (cursor.take(','));
    CTK_CHECK(cursor.expect('}'));
  }
  if (tokens.size() != count && !(dtype == DType::string && tokens.empty())) {
    return cursor.wrong("shape " + ctk::to_string(shape) + " holds " + std::to_string(count) + " elements, found " +
                        std::to_string(tokens.size()));
  }
  CTK_TRY(Tensor tensor, Tensor::zeros(dtype, shape));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!store_element(tokens[i], dtype, tensor.mutable_data(), i)) {
      return cursor.wrong("expected a value of type " + std::string(name_of(dtype)) + ", found \"" +
                          std::string(tokens[i]) + "\"");
    }
  }
  return tensor;
}

Result<Tensor> parse_data(Cursor& cursor, ConstantSource* source, DType dtype, const Shape& shape) {
  auto count = element_count(shape);
  if (!count) return cursor.wrong(count.error().message);
  if (cursor.take('{')) return parse_elements(cursor, dtype, shape, *count);
  const bool is_hash = cursor.peek() == '#';
  if (!is_hash && cursor.peek() != '@') return cursor.expected("constant data: '{', '@' or '#'");
  cursor.take(cursor.peek());
  const std::string_view reference = cursor.bare_word();
  if (reference.empty()) return cursor.expected(is_hash ? "a hash after '#'" : "a reference after '@'");
  if (dtype == DType::string) return cursor.wrong("a string tensor has no stored bytes, expected {}");
  if (is_hash) {
    if (source != nullptr) return cursor.wrong("this constant was printed without its bytes; print it with a sink");
    auto tensor = unknown_bytes(dtype, shape, *count);
    if (!tensor) return cursor.wrong(tensor.error().message);
    return tensor;
  }
  if (source == nullptr) {
    return cursor.wrong("constant data \"@" + std::string(reference) +
                        "\" lies outside the text and no source was given");
  }
  auto tensor = source->load(reference, dtype, shape);
  if (!tensor) return cursor.wrong(tensor.error().message);
  if (!tensor->is_defined() || tensor->dtype() != dtype || tensor->shape() != shape) {
    return cursor.wrong("the source returned a tensor of another type for \"@" + std::string(reference) + "\"");
  }
  return tensor;
}

Result<Shape> parse_sizes(Cursor& cursor) {
  Shape shape;
  CTK_CHECK(cursor.expect('['));
  if (cursor.take(']')) return shape;
  do {
    std::int64_t size = 0;
    CTK_CHECK(cursor.integer<std::int64_t>(size, 0, std::numeric_limits<std::int64_t>::max()));
    shape.push_back(size);
  } while (cursor.take(','));
  CTK_CHECK(cursor.expect(']'));
  return shape;
}

bool is_float_token(std::string_view token) {
  return token.find_first_of(".einf") != std::string_view::npos;
}

Result<Attribute> parse_list(Cursor& cursor) {
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  std::size_t count = 0;
  do {
    if (++count > kMaxAttributeItems) return cursor.wrong("an attribute list is too long");
    if (cursor.peek() == '"') {
      CTK_CHECK(cursor.string(strings.emplace_back()));
      continue;
    }
    const Cursor before = cursor;
    const std::string_view token = cursor.number_token();
    if (is_float_token(token) ? !parse_float(token, floats.emplace_back()) : !parse_whole(token, ints.emplace_back())) {
      return before.expected("a number or a string");
    }
  } while (cursor.take(','));
  CTK_CHECK(cursor.expect(']'));
  if (ints.size() == count) return Attribute(std::move(ints));
  if (floats.size() == count) return Attribute(std::move(floats));
  if (strings.size() == count) return Attribute(std::move(strings));
  return cursor.wrong("a list mixes whole numbers, floats and strings; give floats a '.'");
}

Result<Attribute> parse_opaque(Cursor& cursor, ConstantSource* source) {
  CTK_CHECK(cursor.expect('('));
  std::string bytes;
  if (cursor.peek() == '@') {
    cursor.take('@');
    const std::string_view reference = cursor.bare_word();
    CTK_CHECK(cursor.expect(','));
    std::int64_t count = 0;
    CTK_CHECK(cursor.integer<std::int64_t>(count, 0, std::int64_t{1} << 31));
    if (source == nullptr) return cursor.wrong("opaque bytes lie outside the text and no source was given");
    auto held = source->load(reference, DType::u8, {count});
    if (!held) return cursor.wrong(held.error().message);
    if (!held->is_defined() || held->dtype() != DType::u8 || held->shape() != Shape{count}) {
      return cursor.wrong("the source returned other bytes than asked for");
    }
    bytes.assign(static_cast<const char*>(held->data()), static_cast<std::size_t>(count));
  } else {
    const std::string_view digits = cursor.bare_word();
    if (digits.size() % 2 != 0) return cursor.wrong("opaque bytes need two hexadecimal digits each");
    bytes.resize(digits.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      unsigned byte = 0;
      const char* pair = digits.data() + 2 * i;
      const auto [stop, error] = std::from_chars(pair, pair + 2, byte, 16);
      if (error != std::errc() || stop != pair + 2) return cursor.wrong("expected hexadecimal digits in opaque(...)");
      bytes[i] = static_cast<char>(byte);
    }
  }
  CTK_CHECK(cursor.expect(')'));
  return Attribute(OpaqueAttribute{std::move(bytes)});
}

}  // namespace

Result<Tensor> parse_tensor(Cursor& cursor, ConstantSource* source, const DType* known_dtype,
                            const DeclaredShape* known_shape) {
  if (cursor.take_keyword("none")) return Tensor();
  const char next = cursor.peek();
  if (known_dtype != nullptr && (next == '{' || next == '@' || next == '#')) {
    if (known_shape == nullptr) return cursor.expected("a dtype and sizes, as the value declares no shape");
    Shape shape;
    for (const Dim& dim : *known_shape) {
      if (dim.size < 0) return cursor.expected("a dtype and sizes, as the declared shape has unknown dimensions");
      shape.push_back(dim.size);
    }
    return parse_data(cursor, source, *known_dtype, shape);
  }
  const Cursor before = cursor;
  const auto dtype = dtype_from_name(cursor.bare_word());
  if (!dtype) return before.expected("a dtype");
  CTK_TRY(const Shape shape, parse_sizes(cursor));
  return parse_data(cursor, source, *dtype, shape);
}

Result<Attribute> parse_attribute(Cursor& cursor, ConstantSource* source) {
  if (cursor.peek() == '"') {
    std::string text;
    CTK_CHECK(cursor.string(text));
    return Attribute(std::move(text));
  }
  if (cursor.take('[')) return parse_list(cursor);
  if (cursor.take_keyword("opaque")) return parse_opaque(cursor, source);
  const auto empty_list = [&](Attribute list) -> Result<Attribute> {
    CTK_CHECK(cursor.expect('['));
    CTK_CHECK(cursor.expect(']'));
    return list;
  };
  if (cursor.take_keyword("ints")) return empty_list(std::vector<std::int64_t>());
  if (cursor.take_keyword("floats")) return empty_list(std::vector<float>());
  if (cursor.take_keyword("strings")) return empty_list(std::vector<std::string>());
  Cursor ahead = cursor;
  const std::string_view word = ahead.bare_word();
  if (word == "none" || dtype_from_name(word)) {
    CTK_TRY(Tensor tensor, parse_tensor(cursor, source));
    return Attribute(std::move(tensor));
  }
  const Cursor before = cursor;
  const std::string_view token = cursor.number_token();
  float real = 0;
  std::int64_t whole = 0;
  if (is_float_token(token)) {
    if (!parse_float(token, real)) return before.expected("an attribute value");
    return Attribute(real);
  }
  if (!parse_whole(token, whole)) return before.expected("an attribute value");
  return Attribute(whole);
}

}  // namespace ctk::graph::text
