// Strings, numbers, tensors and attributes of the text form. The grammar stands in graph/text.h.
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "core/hash.h"
#include "graph/text_lines.h"

namespace ctk::graph::text {
namespace {

constexpr char kHex[] = "0123456789abcdef";

template <class T>
void append_chars(std::string& out, T value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}

void append_hex(std::string& out, std::uint64_t bits, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[(bits >> shift) & 15];
}

// `bits` is the stored pattern: a NaN keeps its payload unless it is the default one.
template <class T>
void append_real(std::string& out, T value, std::uint64_t bits, std::uint64_t default_nan, int digits) {
  if (!std::isnan(value)) return append_chars(out, value);
  out += "nan";
  if (bits == default_nan) return;
  out += ':';
  append_hex(out, bits, digits);
}

// Length of the well-formed UTF-8 sequence at text[at], 0 when there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0u) != 0x80u) return 0;
  }
  if (length > 2) {  // overlong forms, surrogates, past U+10FFFF
    const unsigned second = byte(at + 1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second > 0x8f)) {
      return 0;
    }
  }
  return length;
}

void append_element(std::string& out, const Tensor& tensor, std::size_t i) {
  const void* data = tensor.data();
  switch (tensor.dtype()) {
    case DType::f32:
      return append_float(out, static_cast<const float*>(data)[i]);
    case DType::f64: {
      const double value = static_cast<const double*>(data)[i];
      return append_real(out, value, std::bit_cast<std::uint64_t>(value), 0x7ff8000000000000u, 16);
    }
    case DType::f16: {
      const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[i];
      return append_real(out, half_to_float(bits), bits, 0x7e00u, 4);
    }
    case DType::bf16: {
      const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[i];
      return append_real(out, bfloat_to_float(bits), bits, 0x7fc0u, 4);
    }
    case DType::i8:
      return append_chars(out, static_cast<int>(static_cast<const std::int8_t*>(data)[i]));
    case DType::u8:
    case DType::boolean:
      return append_chars(out, static_cast<int>(static_cast<const std::uint8_t*>(data)[i]));
    case DType::i16:
      return append_chars(out, static_cast<const std::int16_t*>(data)[i]);
    case DType::u16:
      return append_chars(out, static_cast<const std::uint16_t*>(data)[i]);
    case DType::i32:
      return append_chars(out, static_cast<const std::int32_t*>(data)[i]);
    case DType::u32:
      return append_chars(out, static_cast<const std::uint32_t*>(data)[i]);
    case DType::i64:
      return append_chars(out, static_cast<const std::int64_t*>(data)[i]);
    case DType::u64:
      return append_chars(out, static_cast<const std::uint64_t*>(data)[i]);
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::i3:
    case DType::i5:
    case DType::i6:
      return append_chars(out, packed_element(data, tensor.dtype(), i));
    case DType::string:
      return;
  }
}

bool has_shape(const DeclaredShape& declared, const Shape& shape) {
  if (declared.size() != shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (declared[i].size != shape[i]) return false;
  }
  return true;
}

template <class T, class Append>
void append_list(std::string& out, const std::vector<T>& items, const char* empty, Append append) {
  if (items.empty()) {
    out += empty;
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += ',';
    append(out, items[i]);
  }
  out += ']';
}

// A float that cannot be taken for an int.
void append_attribute_float(std::string& out, float value) {
  const std::size_t start = out.size();
  append_float(out, value);
  if (out.find_first_of(".einf", start) == std::string::npos) out += ".0";
}

void append_opaque(std::string& out, const std::string& bytes, ConstantSink* sink) {
  out += "opaque(";
  if (sink != nullptr && bytes.size() > kInlineOpaque) {
    const auto owner = std::make_shared<std::string>(bytes);
    out += '@';
    out += sink->store(Tensor::borrowed(DType::u8, {static_cast<std::int64_t>(bytes.size())}, owner->data(), owner));
    out += ", ";
    append_chars(out, bytes.size());
  } else {
    for (char c : bytes) append_hex(out, static_cast<unsigned char>(c), 2);
  }
  out += ')';
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = utf8_length(text, i);
    if (length > 1) {
      out.append(text, i, length);
      i += length;
      continue;
    }
    ++i;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (length == 0 || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += "\\x";
      append_hex(out, static_cast<unsigned char>(c), 2);
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_word(std::string& out, std::string_view text, bool allow_colon) {
  bool is_plain = !text.empty() && text.back() != ':';
  for (char c : text) is_plain = is_plain && (is_word_char(c) || (allow_colon && c == ':'));
  if (is_plain) {
    out += text;
  } else {
    append_string(out, text);
  }
}

void append_int(std::string& out, std::int64_t value) {
  append_chars(out, value);
}

void append_float(std::string& out, float value) {
  append_real(out, value, std::bit_cast<std::uint32_t>(value), 0x7fc00000u, 8);
}

void append_tensor(std::string& out, const Tensor& tensor, ConstantSink* sink, const DType* known_dtype,
                   const DeclaredShape* known_shape) {
  if (!tensor.is_defined()) {
    out += "none";
    return;
  }
  const bool is_known = known_dtype != nullptr && *known_dtype == tensor.dtype() && known_shape != nullptr &&
                        has_shape(*known_shape, tensor.shape());
  if (!is_known) {
    out += name_of(tensor.dtype());
    out += ' ';
    out += ctk::to_string(tensor.shape());
    out += ' ';
  }
  if (tensor.size() <= kInlineElements || tensor.dtype() == DType::string) {
    out += '{';
    for (std::size_t i = 0; i < tensor.size() && tensor.dtype() != DType::string; ++i) {
      if (i != 0) out += ", ";
      append_element(out, tensor, i);
    }
    out += '}';
  } else if (sink != nullptr) {
    out += '@';
    out += sink->store(tensor);
  } else {
    out += '#';
    append_hex(out, hash64(tensor.raw()), 16);
  }
}

void append_attribute(std::string& out, const Attribute& attribute, ConstantSink* sink) {
  struct Visitor {
    std::string& out;
    ConstantSink* sink;
    void operator()(std::int64_t value) const { append_int(out, value); }
    void operator()(float value) const { append_attribute_float(out, value); }
    void operator()(const std::string& value) const { append_string(out, value); }
    void operator()(const std::vector<std::int64_t>& list) const { append_list(out, list, "ints[]", append_int); }
    void operator()(const std::vector<float>& list) const {
      append_list(out, list, "floats[]", append_attribute_float);
    }
    void operator()(const std::vector<std::string>& list) const { append_list(out, list, "strings[]", append_string); }
    void operator()(const Tensor& tensor) const { append_tensor(out, tensor, sink); }
    void operator()(const OpaqueAttribute& opaque) const { append_opaque(out, opaque.bytes, sink); }
  };
  std::visit(Visitor{out, sink}, attribute);
}

}  // namespace ctk::graph::text
