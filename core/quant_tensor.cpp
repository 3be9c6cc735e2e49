#include "core/quant_tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "core/parallel.h"

namespace ctk {
namespace {

constexpr std::size_t kGrain = std::size_t{1} << 14;  // codes; whole bytes at any width

}  // namespace

ActivationQuant activation_quant_from_range(float low, float high) {
  // Zero must have a code of its own: padding and Relu rely on it.
  const double lo = std::min(0.0, static_cast<double>(low));
  const double hi = std::max(0.0, static_cast<double>(high));
  if (lo == 0.0 && hi == 0.0) return {1.0f, 0};
  const float exact = static_cast<float>((hi - lo) / 255.0);
  float scale = exact;
  if (!(scale >= std::numeric_limits<float>::min())) scale = std::numeric_limits<float>::min();
  if (!std::isfinite(scale)) scale = std::numeric_limits<float>::max();
  // From the range itself, not from the scale rounded to float: [-r, r] then lies 127.5 steps below zero exactly and
  // gets 128 for every r.
  const double zero = std::nearbyint(scale == exact ? -lo * 255.0 / (hi - lo) : -lo / static_cast<double>(scale));
  return {scale, static_cast<std::uint8_t>(std::clamp(zero, 0.0, 255.0))};
}

std::uint8_t quantize(float value, const ActivationQuant& q) {
  const float zero = static_cast<float>(q.zero_point);
  // Clamping first keeps the conversion defined for any float; NaN becomes the zero point.
  const float scaled = value / q.scale;
  const float clamped = std::min(std::max(scaled, -zero), 255.0f - zero);
  if (std::isnan(clamped)) return q.zero_point;
  return static_cast<std::uint8_t>(static_cast<int>(std::nearbyint(clamped)) + static_cast<int>(q.zero_point));
}

std::size_t groups_of(const Shape& shape, int channel_axis, const QuantScheme& scheme) {
  if (scheme.granularity != Granularity::per_group || shape.size() != 2) return 1;
  const auto summed = static_cast<std::size_t>(shape[channel_axis == 0 ? 1 : 0]);
  const auto size = static_cast<std::size_t>(scheme.group_size);
  return std::max<std::size_t>(1, (summed + size - 1) / size);
}

int lowest_code(int bits) {
  return bits == 8 ? -127 : -(1 << (bits - 1));
}
int highest_code(int bits) {
  return (1 << (bits - 1)) - 1;
}

bool has_half_scales(const QuantTensor& weight) {
  return weight.scheme.is_integer_weight() && !weight.scheme.is_integer_activation() &&
         std::ranges::all_of(weight.scales, [](float s) { return half_to_float(float_to_half(s)) == s; });
}

std::size_t stored_bytes(const QuantTensor& weight) {
  const std::size_t zeros = weight.zeros.empty() ? 0 : byte_size(weight.codes.dtype(), weight.zeros.size());
  return weight.codes.bytes() + zeros + (has_half_scales(weight) ? 2 : 4) * weight.scales.size();
}

std::vector<std::int8_t> unpack_codes(const QuantTensor& weight) {
  const Tensor& codes = weight.codes;
  if (codes.dtype() == DType::i8) {
    const auto values = codes.values<std::int8_t>();
    return {values.begin(), values.end()};
  }
  std::vector<std::int8_t> out(codes.size());
  parallel_for(out.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    unpack_elements(codes.data(), codes.dtype(), begin, end - begin, out.data() + begin);
  });
  return out;
}

Tensor pack_codes(const Shape& shape, std::span<const std::int8_t> codes, int bits) {
  if (bits == 8) return Tensor::of<std::int8_t>(shape, codes);
  Tensor packed = Tensor::zeros(code_dtype(bits), shape).value();
  std::size_t packed_count = 0;
  if (bits == 4) {  // two a byte, the first in its low half; many bytes, so over threads
    auto* bytes = static_cast<std::uint8_t*>(packed.mutable_data());
    const std::size_t pairs = codes.size() / 2;
    parallel_for(pairs, 4096, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const auto low = static_cast<unsigned>(codes[2 * i]) & 15u,
                   high = static_cast<unsigned>(codes[2 * i + 1]) & 15u;
        bytes[i] = static_cast<std::uint8_t>(low | high << 4);
      }
    });
    packed_count = 2 * pairs;
  }
  for (std::size_t i = packed_count; i < codes.size(); ++i)
    store_packed(packed.mutable_data(), packed.dtype(), i, codes[i]);
  return packed;
}

std::vector<std::uint32_t> channel_of_elements(const Shape& shape, int channel_axis, int group_count) {
  const std::size_t axis = static_cast<std::size_t>(channel_axis);
  std::size_t inner = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= static_cast<std::size_t>(shape[d]);
  const std::size_t extent = static_cast<std::size_t>(shape[axis]);
  const std::size_t total = elements(shape);
  // With groups on the leading dimension (ConvTranspose), rows of group g feed channels g * extent + index.
  const std::size_t rows_per_group = group_count > 1 ? static_cast<std::size_t>(shape[0] / group_count) : 0;
  std::size_t row_size = total / std::max<std::size_t>(1, static_cast<std::size_t>(shape[0]));
  std::vector<std::uint32_t> channels(total);
  for (std::size_t i = 0; i < total; ++i) {
    std::size_t channel = i / inner % extent;
    if (group_count > 1) channel += i / row_size / rows_per_group * extent;
    channels[i] = static_cast<std::uint32_t>(channel);
  }
  return channels;
}

std::vector<std::uint32_t> scale_of_elements(const Shape& shape, int channel_axis, int group_count,
                                             const QuantScheme& scheme) {
  if (scheme.granularity == Granularity::per_tensor) return std::vector<std::uint32_t>(elements(shape), 0);
  if (scheme.granularity == Granularity::per_channel) return channel_of_elements(shape, channel_axis, group_count);
  const std::size_t groups = groups_of(shape, channel_axis, scheme);
  const auto columns = static_cast<std::size_t>(shape[1]), size = static_cast<std::size_t>(scheme.group_size);
  std::vector<std::uint32_t> places(elements(shape));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t row = i / columns, column = i % columns;
    places[i] =
        static_cast<std::uint32_t>(channel_axis == 0 ? row * groups + column / size : column * groups + row / size);
  }
  return places;
}

Tensor dequantize(const QuantTensor& weight) {
  if (weight.codes.dtype() == DType::f16) return to_f32(weight.codes).value();
  Tensor out = Tensor::zeros(DType::f32, weight.codes.shape()).value();
  auto values = out.mutable_values<float>();
  const std::vector<std::int8_t> codes = unpack_codes(weight);
  const auto zero = [&](std::size_t i) { return weight.zeros.empty() ? 0 : static_cast<int>(weight.zeros[i]); };
  if (weight.scales.size() == 1) {
    for (std::size_t i = 0; i < codes.size(); ++i)
      values[i] = static_cast<float>(codes[i] - zero(0)) * weight.scales[0];
    return out;
  }
  const auto place = scale_of_elements(weight.codes.shape(), weight.channel_axis, weight.group_count, weight.scheme);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    values[i] = static_cast<float>(codes[i] - zero(place[i])) * weight.scales[place[i]];
  }
  return out;
}

QuantBias quantize_bias(std::span<const float> bias, float input_scale, std::span<const float> weight_scales) {
  QuantBias out;
  out.codes.reserve(bias.size());
  for (std::size_t c = 0; c < bias.size(); ++c) {
    const float scale = input_scale * weight_scales[weight_scales.size() == 1 ? 0 : c];
    const double code = std::nearbyint(static_cast<double>(bias[c]) / static_cast<double>(scale));
    // A scale that underflowed to 0 makes 0 / 0 of a zero bias, whose code is 0 at any scale.
    const double fitted = std::isnan(code) ? 0.0 : std::clamp(code, -2147483648.0, 2147483647.0);
    if (fitted != code && bias[c] != 0.0f) ++out.clipped;
    out.codes.push_back(static_cast<std::int32_t>(fitted));
  }
  return out;
}

float least_weight_scale_for_bias(float bias, float input_scale) {
  if (bias == 0.0f) return 0.0f;
  // 2^30 leaves as much room again for the products summed on top; a step of the bias must be a normal number.
  const double least_step = std::max(std::abs(static_cast<double>(bias)) / 1073741824.0,
                                     static_cast<double>(std::numeric_limits<float>::min()));
  const double least = least_step / static_cast<double>(input_scale);
  return static_cast<float>(least * (1.0 + 1e-6));
}

}  // namespace ctk
