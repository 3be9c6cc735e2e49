// Cast: element type conversion among the float types, integers of 8 to 64 bits and bool; 4-bit only as source.
// Rule: to an integer, the fraction is cut off, NaN gives 0 and what does not fit saturates (the standard leaves both
// open); between integers, the low bits are kept; to bool, anything but 0 is true (NaN too).
#include <cmath>
#include <limits>
#include <utility>

#include "graph/ops/check.h"

namespace ctk::graph {
namespace {

// Reads element i as T = float, double or (u)int64, whichever holds every value of the source exactly.
template <class T>
struct Source {
  const T* data;
  T operator()(std::size_t i) const { return data[i]; }
};
struct HalfSource {
  const std::uint16_t* data;
  float operator()(std::size_t i) const { return half_to_float(data[i]); }
};
struct BfloatSource {
  const std::uint16_t* data;
  float operator()(std::size_t i) const { return bfloat_to_float(data[i]); }
};
struct BoolSource {
  const std::uint8_t* data;
  std::uint8_t operator()(std::size_t i) const { return data[i] != 0 ? 1 : 0; }
};
struct NibbleSource {
  const std::uint8_t* data;
  bool is_signed;
  int operator()(std::size_t i) const {
    const int nibble = (data[i / 2] >> (4 * (i % 2))) & 15;
    return is_signed && nibble >= 8 ? nibble - 16 : nibble;
  }
};

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Both limits as powers of two, exact in either float type.
    const From past = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    if (value != value) return 0;
    if (value >= past) return std::numeric_limits<To>::max();
    if (std::is_signed_v<To> ? value < -past : value <= From{-1}) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class Read>
Status write(const Read& read, const MutableTensorView& out) {
  const std::size_t count = out.size();
  const auto fill = [&]<class To>(To* y) -> Status {
    for (std::size_t i = 0; i < count; ++i) y[i] = convert<To>(read(i));
    return {};
  };
  switch (out.dtype) {
    case DType::f32:
      return fill(out.as<float>());
    case DType::f64:
      return fill(out.as<double>());
    case DType::i8:
      return fill(out.as<std::int8_t>());
    case DType::u8:
      return fill(out.as<std::uint8_t>());
    case DType::i16:
      return fill(out.as<std::int16_t>());
    case DType::u16:
      return fill(out.as<std::uint16_t>());
    case DType::i32:
      return fill(out.as<std::int32_t>());
    case DType::u32:
      return fill(out.as<std::uint32_t>());
    case DType::i64:
      return fill(out.as<std::int64_t>());
    case DType::u64:
      return fill(out.as<std::uint64_t>());
    case DType::boolean:
      for (std::size_t i = 0; i < count; ++i) out.as<std::uint8_t>()[i] = read(i) != 0 ? 1 : 0;
      return {};
    case DType::f16:
      for (std::size_t i = 0; i < count; ++i) out.as<std::uint16_t>()[i] = float_to_half(static_cast<float>(read(i)));
      return {};
    case DType::bf16:
      for (std::size_t i = 0; i < count; ++i) out.as<std::uint16_t>()[i] = float_to_bfloat(static_cast<float>(read(i)));
      return {};
    default:
      return internal_error("element type " + std::string(name_of(out.dtype)) + " passed inference");
  }
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const TensorView& in = inputs[0];
  switch (in.dtype) {
    case DType::f32:
      return write(Source<float>{in.as<float>()}, outputs[0]);
    case DType::f64:
      return write(Source<double>{in.as<double>()}, outputs[0]);
    case DType::f16:
      return write(HalfSource{in.as<std::uint16_t>()}, outputs[0]);
    case DType::bf16:
      return write(BfloatSource{in.as<std::uint16_t>()}, outputs[0]);
    case DType::i8:
      return write(Source<std::int8_t>{in.as<std::int8_t>()}, outputs[0]);
    case DType::u8:
      return write(Source<std::uint8_t>{in.as<std::uint8_t>()}, outputs[0]);
    case DType::i16:
      return write(Source<std::int16_t>{in.as<std::int16_t>()}, outputs[0]);
    case DType::u16:
      return write(Source<std::uint16_t>{in.as<std::uint16_t>()}, outputs[0]);
    case DType::i32:
      return write(Source<std::int32_t>{in.as<std::int32_t>()}, outputs[0]);
    case DType::u32:
      return write(Source<std::uint32_t>{in.as<std::uint32_t>()}, outputs[0]);
    case DType::i64:
      return write(Source<std::int64_t>{in.as<std::int64_t>()}, outputs[0]);
    case DType::u64:
      return write(Source<std::uint64_t>{in.as<std::uint64_t>()}, outputs[0]);
    case DType::boolean:
      return write(BoolSource{in.as<std::uint8_t>()}, outputs[0]);
    case DType::i4:
      return write(NibbleSource{in.as<std::uint8_t>(), true}, outputs[0]);
    case DType::u4:
      return write(NibbleSource{in.as<std::uint8_t>(), false}, outputs[0]);
    case DType::string:
    case DType::i2:
    case DType::i3:
    case DType::i5:
    case DType::i6:
      break;
  }
  return internal_error("element type " + std::string(name_of(in.dtype)) + " passed inference");
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  auto to = dtype_from_onnx(node.attributes.get_int("to", 0));
  if (!to) return std::move(to).error().with_context("to");
  const DType from = inputs[0].info.dtype;
  const bool is_source = bits_of(from) >= 8 || from == DType::i4 || from == DType::u4;
  if (!is_source || bits_of(*to) < 8) {
    return input_error("to: expected a conversion between numbers of whole bytes, found " + std::string(name_of(from)) +
                       " to " + std::string(name_of(*to)) + ". Remove the Cast.");
  }
  CTK_TRY(auto outputs, single_output(*to, inputs[0].info.shape));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Cast() {
  static const OpRules rules = {OpKind::other, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
