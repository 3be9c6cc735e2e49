#include "data/convert.h"

#include <array>
#include <cmath>
#include <cstring>

namespace ctk::data {
namespace {

bool is_channel_last(const Shape& found, const Shape& expected) {
  return found.size() == 3 && expected.size() == 3 && found[2] == expected[0] && expected[0] > 0 &&
         found[0] != expected[0];
}

std::string expected_shape(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ",";
    text += shape[i] < 0 ? "any" : std::to_string(shape[i]);
  }
  return text + "]";
}

bool fits(const Shape& found, const Shape& expected) {
  if (found.size() != expected.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (expected[i] >= 0 && found[i] != expected[i]) return false;
  return true;
}

// Integers that hold every value of `from`.
bool widens(DType from, DType to) {
  if (from == to) return true;
  if (is_float(from) || is_float(to) || from == DType::string) return false;
  if (to == DType::i64) return from != DType::u64;
  return to == DType::i32 && bits_of(from) < 32;
}

// (stored - zero_point) / scale, then (v - mean) / std: numbers of one channel.
struct Affine {
  double zero_point, scale, mean, std;
  float operator()(double stored) const { return static_cast<float>(((stored - zero_point) / scale - mean) / std); }
};

double of_channel(const std::vector<double>& values, std::size_t channel, double absent) {
  return values.empty() ? absent : values.size() == 1 ? values[0] : values[channel];
}

Error not_finite(std::size_t element, const char* when) {
  return input_error("element " + std::to_string(element) + " is NaN or infinite " + when +
                     ". Mend the data, or set on_bad_sample: skip.");
}

template <class T>
Status convert_channel(const Affine& affine, const T* in, std::size_t count, std::size_t offset, float* out) {
  if constexpr (sizeof(T) == 1) {  // a table is as exact and much faster than two divisions a pixel
    std::array<float, 256> table;
    for (int code = 0; code < 256; ++code)
      table[static_cast<std::size_t>(code)] = affine(static_cast<double>(static_cast<T>(code)));
    for (std::size_t i = 0; i < count; ++i) out[i] = table[static_cast<std::uint8_t>(in[i])];
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = affine(static_cast<double>(in[i]));
  }
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(out[i])) return not_finite(offset + i, "as float32 after scale, mean and std");
  return {};
}

template <class T>
Status convert_floats(const SourceSpec& spec, const Tensor& stored, float* out) {
  const T* in = static_cast<const T*>(stored.data());
  const std::size_t channels = stored.shape().empty() ? 1 : static_cast<std::size_t>(stored.shape()[0]);
  const std::size_t inner = channels == 0 ? 0 : stored.size() / channels;
  for (std::size_t c = 0; c < channels; ++c) {
    const Affine affine{spec.zero_point.value_or(0.0), spec.scale.value_or(1.0), of_channel(spec.mean, c, 0.0),
                        of_channel(spec.std, c, 1.0)};
    CTK_CHECK(convert_channel(affine, in + c * inner, inner, c * inner, out + c * inner));
  }
  return {};
}

template <class To>
Status widen(const Tensor& stored, To* out) {
  CTK_TRY(const std::vector<std::int64_t> values, to_i64(stored));
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<To>(values[i]);
  return {};
}

}  // namespace

bool has_conversion(const SourceSpec& spec) {
  return spec.scale || spec.zero_point || !spec.mean.empty() || !spec.std.empty();
}

Status check_numbers(const SourceSpec& spec) {
  const auto wrong = [&](const std::string& key, const std::string& expected, const std::string& found) {
    return config_error(spec.path + ": " + key + ": expected " + expected + ", found " + found + ".");
  };
  const double scale = spec.scale.value_or(1.0);
  if (!std::isfinite(scale) || scale == 0) return wrong("scale", "a number other than 0", std::to_string(scale));
  if (!std::isfinite(spec.zero_point.value_or(0.0))) return wrong("zero_point", "a finite number", "one that is not");
  for (double mean : spec.mean)
    if (!std::isfinite(mean)) return wrong("mean", "finite numbers", std::to_string(mean));
  for (double std : spec.std)
    if (!std::isfinite(std) || std <= 0) return wrong("std", "numbers above 0", std::to_string(std));
  if (spec.skip < 0) return wrong("skip", "0 or more", std::to_string(spec.skip));
  if (spec.samples && *spec.samples < 1) return wrong("samples", "at least 1", std::to_string(*spec.samples));
  if (spec.text && spec.text->windows && *spec.text->windows < 1)
    return wrong("windows", "at least 1", std::to_string(*spec.text->windows));
  if (spec.resize && (*spec.resize < 1 || *spec.resize > 65535))
    return wrong("resize", "1 to 65535 pixels", std::to_string(*spec.resize));
  if (spec.crop && (*spec.crop < 1 || *spec.crop > 65535))
    return wrong("crop", "1 to 65535 pixels", std::to_string(*spec.crop));
  return {};
}

Status check_sample(const SourceSpec& spec, const InputInfo& input, const Tensor& stored, const std::string& origin) {
  const std::string expected = "input '" + input.name + "': expected ";
  const std::string found(name_of(stored.dtype()));
  if (!fits(stored.shape(), input.shape))
    return input_error(expected + "samples of shape " + expected_shape(input.shape) + ", found " +
                       to_string(stored.shape()) + " in " + origin + ". " +
                       (is_channel_last(stored.shape(), input.shape)
                            ? "The channels come last: save it with axes (N, C, H, W)."
                            : "Save samples of the model's shape."));
  if (input.dtype != DType::f32) {
    if (!widens(stored.dtype(), input.dtype))
      return input_error(expected + std::string(name_of(input.dtype)) + ", found " + found + " in " + origin +
                         ". Save the array in the model's type.");
    return {};
  }
  if (is_float(stored.dtype()) && stored.dtype() != DType::f32)
    return input_error(expected + "f32, found " + found + " in " + origin + ". Save the array as float32.");
  if (stored.dtype() != DType::f32 && !has_conversion(spec))
    return input_error(expected + "f32, found " + found + " in " + origin + ": " + found +
                       " needs an explicit conversion in the config. Add scale, mean, std or zero_point " +
                       "(scale: 1 takes the numbers as they are).");
  const std::size_t channels = stored.shape().empty() ? 1 : static_cast<std::size_t>(stored.shape()[0]);
  for (const auto& [key, values] : {std::pair{"mean", &spec.mean}, std::pair{"std", &spec.std}})
    if (values->size() > 1 && values->size() != channels)
      return input_error("input '" + input.name + "': " + key + ": expected one number or one for each of " +
                         std::to_string(channels) + " channels of " + origin + ", found " +
                         std::to_string(values->size()) + ".");
  return {};
}

std::optional<std::size_t> find_not_finite(const Tensor& tensor) {
  if (tensor.dtype() != DType::f32) return std::nullopt;
  const auto values = tensor.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i])) return i;
  return std::nullopt;
}

Status convert_sample(const SourceSpec& spec, const InputInfo& input, const Tensor& stored, void* out) {
  if (const auto bad = find_not_finite(stored)) return not_finite(*bad, "in the file");
  if (stored.dtype() == input.dtype && (input.dtype != DType::f32 || !has_conversion(spec))) {
    if (stored.bytes() != 0) std::memcpy(out, stored.data(), stored.bytes());
    return {};
  }
  if (input.dtype == DType::i32) return widen(stored, static_cast<std::int32_t*>(out));
  if (input.dtype == DType::i64) return widen(stored, static_cast<std::int64_t*>(out));
  float* floats = static_cast<float*>(out);
  switch (stored.dtype()) {
    case DType::f32:
      return convert_floats<float>(spec, stored, floats);
    case DType::u8:
    case DType::boolean:
      return convert_floats<std::uint8_t>(spec, stored, floats);
    case DType::i8:
      return convert_floats<std::int8_t>(spec, stored, floats);
    case DType::u16:
      return convert_floats<std::uint16_t>(spec, stored, floats);
    case DType::i16:
      return convert_floats<std::int16_t>(spec, stored, floats);
    case DType::u32:
      return convert_floats<std::uint32_t>(spec, stored, floats);
    case DType::i32:
      return convert_floats<std::int32_t>(spec, stored, floats);
    case DType::u64:
      return convert_floats<std::uint64_t>(spec, stored, floats);
    case DType::i64:
      return convert_floats<std::int64_t>(spec, stored, floats);
    default:
      return internal_error("a stored type passed its check and has no conversion");
  }
}

}  // namespace ctk::data
