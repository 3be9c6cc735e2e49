// Quantized numbers: the rules that map codes to reals, written once.
//
// Activations: code q in uint8, real = (q - zero_point) * scale, scale > 0 and finite. Real 0 is code zero_point
// exactly.
// Weights, symmetric: real = code * scale[channel] or scale[channel, group]; codes of b bits are -2^(b-1)..2^(b-1)-1,
// but of 8 bits -127..127. A group is group_size neighbours along the summed dimension of a matrix (the last may be
// shorter). Weights, affine: real = (code - zero) * scale, all codes of the width, zero among them.
// Scales of weights whose activations are floats in the graph (w4a16_g32, w4a16_c, also w4a8_g32) are fp16 numbers
// where they are ours to choose, and may be negative: the side that reaches one step further is then the upper one, as
// in GGUF's Q4_0. Where activations are codes, scales are above 0. Bias: int32 at scale s_in * s_w[channel], zero point
// 0, rounded to nearest, ties to even. Rounding to a code is always: to nearest, ties to even, then saturate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/quant_scheme.h"
#include "core/tensor.h"

namespace ctk {

// The note on an activation value.
struct ActivationQuant {
  float scale = 1.0f;
  std::uint8_t zero_point = 0;
  bool operator==(const ActivationQuant&) const = default;
};

// Range [low, high] (widened to hold 0) -> scale and zero point over 0..255. A range of zero width at 0 gets scale 1;
// a scale that would underflow float32 is raised to the smallest normal number.
ActivationQuant activation_quant_from_range(float low, float high);
std::uint8_t quantize(float value, const ActivationQuant& q);
inline float dequantize(std::uint8_t code, const ActivationQuant& q) {
  return static_cast<float>(static_cast<int>(code) - static_cast<int>(q.zero_point)) * q.scale;
}

// The note on a weight value: codes instead of floats.
struct QuantTensor {
  QuantScheme scheme;
  int channel_axis = 0;            // output-channel dimension of `codes`; scales run along it
  int group_count = 1;             // ConvTranspose with groups: channels = group_count * shape[channel_axis]
  Tensor codes;                    // code_dtype(bits), narrow ones packed; f16 for fp16; the weight's shape
  std::vector<float> scales;       // [channels], [channels, groups] or [1]; finite, not 0; empty for fp16
  std::vector<std::int8_t> zeros;  // affine: one beside each scale; else empty
  std::string method;              // "rtn", "gptq", ...: how the codes were found
};

// Groups along the summed dimension of a matrix with its channels on `channel_axis`; 1 unless the scheme has groups.
std::size_t groups_of(const Shape& shape, int channel_axis, const QuantScheme& scheme);
// Whether every scale is an fp16 number, and the scheme one that files store so.
bool has_half_scales(const QuantTensor& weight);
// The least and the greatest code of a symmetric weight; of an affine one all codes of the width.
int lowest_code(int bits);   // -127 for 8 bits (negation stays exact), -2^(bits-1) for fewer
int highest_code(int bits);  // 2^(bits-1) - 1
// Bytes of codes, scales and zero points as files hold them.
std::size_t stored_bytes(const QuantTensor& weight);

// Integer codes as int8, one each (unpacks narrow ones; not for fp16). Same order as the weight.
std::vector<std::int8_t> unpack_codes(const QuantTensor& weight);
// Codes, each within the width, as a tensor of code_dtype(bits) and the same shape. Bits behind the last code are 0.
Tensor pack_codes(const Shape& shape, std::span<const std::int8_t> codes, int bits);
// The float weight the codes stand for, same shape.
Tensor dequantize(const QuantTensor& weight);
// Index into scales for flat element i of the weight. Derived once per tensor: see channel_of().
std::vector<std::uint32_t> channel_of_elements(const Shape& shape, int channel_axis, int group_count);
// The same for any scheme: all 0 with one scale a tensor, channel * groups + group with groups.
std::vector<std::uint32_t> scale_of_elements(const Shape& shape, int channel_axis, int group_count,
                                             const QuantScheme& scheme);

// Bias codes round(bias[c] / (input_scale * scales[c])), saturated to int32. `clipped` counts saturated ones, which a
// quantizer must avoid by raising the weight scale (see raise_scale_for_bias()).
struct QuantBias {
  std::vector<std::int32_t> codes;  // [channels]
  int clipped = 0;
};
QuantBias quantize_bias(std::span<const float> bias, float input_scale, std::span<const float> weight_scales);
// The least weight scale at which `bias` fits into 2^30 codes: weight scales below it must be raised to it.
float least_weight_scale_for_bias(float bias, float input_scale);

}  // namespace ctk
