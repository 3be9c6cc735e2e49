#include "graph/onnx/tensor_proto.h"

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

namespace ctk::graph::onnx {
namespace {

struct TypeRow {
  int number;
  const char* name;
  std::optional<DType> dtype;
};

// Numbers of TensorProto.DataType.
constexpr std::array<TypeRow, 25> kTypes{{
    {1, "FLOAT", DType::f32},    {2, "UINT8", DType::u8},     {3, "INT8", DType::i8},     {4, "UINT16", DType::u16},
    {5, "INT16", DType::i16},    {6, "INT32", DType::i32},    {7, "INT64", DType::i64},   {8, "STRING", DType::string},
    {9, "BOOL", DType::boolean}, {10, "FLOAT16", DType::f16}, {11, "DOUBLE", DType::f64}, {12, "UINT32", DType::u32},
    {13, "UINT64", DType::u64},  {14, "COMPLEX64", {}},       {15, "COMPLEX128", {}},     {16, "BFLOAT16", DType::bf16},
    {17, "FLOAT8E4M3FN", {}},    {18, "FLOAT8E4M3FNUZ", {}},  {19, "FLOAT8E5M2", {}},     {20, "FLOAT8E5M2FNUZ", {}},
    {21, "UINT4", DType::u4},    {22, "INT4", DType::i4},     {23, "FLOAT4E2M1", {}},     {24, "FLOAT8E8M0", {}},
    {0, "UNDEFINED", {}},
}};

Error at(const ::onnx::TensorProto& proto, const std::string& text) {
  return input_error("tensor \"" + proto.name() + "\": " + text);
}

Result<Shape> shape_of(const ::onnx::TensorProto& proto) {
  Shape shape(proto.dims().begin(), proto.dims().end());
  if (shape.size() > 64) return at(proto, "expected at most 64 dimensions, found " + std::to_string(shape.size()));
  const auto count = element_count(shape);
  if (!count) return at(proto, "unusable dims: " + count.error().message);
  return shape;
}

Result<std::uint64_t> parse_number(const ::onnx::TensorProto& proto, const ::onnx::StringStringEntryProto& entry) {
  std::uint64_t number = 0;
  const std::string& text = entry.value();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return at(proto, "external data: expected a number of bytes as " + entry.key() + ", found \"" + text + "\"");
  }
  return number;
}

// One spelling of each content: booleans 0 or 1, the unused nibble of an odd
// 4-bit tail 0.
void make_canonical(Tensor& tensor) {
  auto* bytes = static_cast<std::uint8_t*>(tensor.mutable_data());
  if (tensor.dtype() == DType::boolean) {
    for (std::size_t i = 0; i < tensor.size(); ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
  }
  if (bits_of(tensor.dtype()) == 4 && tensor.size() % 2 == 1) bytes[tensor.size() / 2] &= 0x0f;
}

Result<Tensor> read_external(const ::onnx::TensorProto& proto, DType dtype, const Shape& shape,
                             ExternalData& external) {
  std::string location;
  std::uint64_t offset = 0;
  const std::size_t expected = byte_size(dtype, elements(shape));
  std::uint64_t length = expected;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") {
      CTK_TRY(offset, parse_number(proto, entry));
    }
    if (entry.key() == "length") {
      CTK_TRY(length, parse_number(proto, entry));
    }
  }
  if (length != expected) {
    return at(proto, "external data \"" + location + "\": shape " + to_string(shape) + " needs " +
                         std::to_string(expected) + " bytes, the model says " + std::to_string(length));
  }
  auto tensor = external.tensor(location, offset, dtype, shape);
  if (!tensor) return std::move(tensor).error().with_context("tensor \"" + proto.name() + "\"");
  if (dtype == DType::boolean || bits_of(dtype) == 4) {
    Tensor copy = tensor->clone();
    make_canonical(copy);
    return copy;
  }
  return tensor;
}

// Copies typed fields; T is what is stored. Refuses integers below `low` or
// above `high` (by default what T holds).
template <class T, class Field>
Status fill(const ::onnx::TensorProto& proto, const Field& field, const char* field_name, Tensor& tensor,
            std::optional<std::int64_t> low = {}, std::optional<std::int64_t> high = {}) {
  const std::size_t stored = tensor.bytes() / sizeof(T);
  if (static_cast<std::size_t>(field.size()) != stored) {
    return at(proto, "shape " + to_string(tensor.shape()) + " needs " + std::to_string(stored) + " values, found " +
                         std::to_string(field.size()) + " in " + field_name);
  }
  T* out = static_cast<T*>(tensor.mutable_data());
  for (std::size_t i = 0; i < stored; ++i) {
    const auto value = field.Get(static_cast<int>(i));
    if constexpr (std::is_integral_v<T>) {
      const bool fits = low && high ? std::cmp_greater_equal(value, *low) && std::cmp_less_equal(value, *high)
                                    : std::in_range<T>(value);
      if (!fits) {
        return at(proto, "element " + std::to_string(i) + " is " + std::to_string(value) + ", out of range for " +
                             std::string(name_of(tensor.dtype())));
      }
    }
    out[i] = static_cast<T>(value);
  }
  return {};
}

Status read_typed(const ::onnx::TensorProto& p, Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f32:
      return fill<float>(p, p.float_data(), "float_data", tensor);
    case DType::f64:
      return fill<double>(p, p.double_data(), "double_data", tensor);
    case DType::i64:
      return fill<std::int64_t>(p, p.int64_data(), "int64_data", tensor);
    case DType::u64:
      return fill<std::uint64_t>(p, p.uint64_data(), "uint64_data", tensor);
    case DType::u32:
      return fill<std::uint32_t>(p, p.uint64_data(), "uint64_data", tensor);
    case DType::i32:
      return fill<std::int32_t>(p, p.int32_data(), "int32_data", tensor);
    case DType::i16:
      return fill<std::int16_t>(p, p.int32_data(), "int32_data", tensor);
    case DType::i8:
      return fill<std::int8_t>(p, p.int32_data(), "int32_data", tensor);
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return fill<std::uint16_t>(p, p.int32_data(), "int32_data", tensor);
    case DType::u8:
    case DType::boolean:
      return fill<std::uint8_t>(p, p.int32_data(), "int32_data", tensor);
    case DType::i4:
    case DType::u4:
      return fill<std::uint8_t>(p, p.int32_data(), "int32_data (two a byte)", tensor, -128, 255);
    case DType::string:
    case DType::i2:
    case DType::i3:
    case DType::i5:
    case DType::i6:
      break;
  }
  return at(p, "strings are carried, not read");
}

bool is_external(const ::onnx::TensorProto& proto) {
  return proto.data_location() == ::onnx::TensorProto::EXTERNAL;
}

}  // namespace

std::optional<DType> dtype_from_onnx(int number) {
  for (const TypeRow& row : kTypes) {
    if (row.number == number) return row.dtype;
  }
  return std::nullopt;
}

int onnx_number_of(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row.number;
  }
  return 0;
}

std::string describe_onnx_type(int number) {
  for (const TypeRow& row : kTypes) {
    if (row.number == number) return std::string(row.name) + " (" + std::to_string(number) + ")";
  }
  return "unknown (" + std::to_string(number) + ")";
}

Result<Tensor> tensor_from_proto(::onnx::TensorProto& proto, ExternalData& external) {
  const std::optional<DType> dtype = dtype_from_onnx(proto.data_type());
  if (!dtype || *dtype == DType::string) {
    return at(proto, "element type " + describe_onnx_type(proto.data_type()) +
                         " is not supported. Expected a float, integer, 4-bit "
                         "or bool type.");
  }
  if (proto.has_segment()) return at(proto, "segmented tensors are not supported: store it whole");
  CTK_TRY(const Shape shape, shape_of(proto));
  if (is_external(proto)) return read_external(proto, *dtype, shape, external);

  // Sizes are compared before memory is asked for: dims alone must not cause a
  // large allocation.
  const std::size_t bytes = byte_size(*dtype, elements(shape));
  const bool is_raw = !proto.raw_data().empty();
  const bool has_typed = proto.float_data_size() + proto.int32_data_size() + proto.int64_data_size() +
                             proto.double_data_size() + proto.uint64_data_size() !=
                         0;
  if (is_raw && has_typed) return at(proto, "expected one data field, found raw_data and another");
  if (is_raw && proto.raw_data().size() != bytes) {
    return at(proto, "shape " + to_string(shape) + " of " + std::string(name_of(*dtype)) + " needs " +
                         std::to_string(bytes) + " bytes, found " + std::to_string(proto.raw_data().size()) +
                         " in raw_data");
  }
  if (!is_raw && !has_typed && bytes != 0) {
    return at(proto, "shape " + to_string(shape) + " needs " + std::to_string(bytes) + " bytes, found no data");
  }
  const std::size_t most_typed_bytes =
      8 * (static_cast<std::size_t>(proto.float_data_size()) + static_cast<std::size_t>(proto.int32_data_size()) +
           static_cast<std::size_t>(proto.int64_data_size()) + static_cast<std::size_t>(proto.double_data_size()) +
           static_cast<std::size_t>(proto.uint64_data_size()));
  if (!is_raw && bytes > most_typed_bytes) {
    return at(proto, "shape " + to_string(shape) + " needs " + std::to_string(bytes) + " bytes, found fewer values");
  }
  CTK_TRY(Tensor tensor, Tensor::zeros(*dtype, shape));
  if (is_raw) {
    std::memcpy(tensor.mutable_data(), proto.raw_data().data(), bytes);
    std::string().swap(*proto.mutable_raw_data());
  } else {
    CTK_CHECK(read_typed(proto, tensor));
    proto.clear_float_data();
    proto.clear_int32_data();
    proto.clear_int64_data();
    proto.clear_double_data();
    proto.clear_uint64_data();
  }
  make_canonical(tensor);
  return tensor;
}

Status make_inline(::onnx::TensorProto& proto, ExternalData& external) {
  if (!is_external(proto)) return {};
  CTK_TRY(const Tensor tensor, tensor_from_proto(proto, external));
  proto.clear_external_data();
  proto.clear_data_location();
  proto.set_raw_data(tensor.data(), tensor.bytes());
  return {};
}

void tensor_to_proto(const Tensor& tensor, const std::string& name, bool with_data, ::onnx::TensorProto& proto) {
  for (std::int64_t dim : tensor.shape()) proto.add_dims(dim);
  proto.set_data_type(onnx_number_of(tensor.dtype()));
  if (!name.empty()) proto.set_name(name);
  if (with_data) proto.set_raw_data(tensor.data(), tensor.bytes());
}

}  // namespace ctk::graph::onnx
