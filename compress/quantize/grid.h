// Low-bit grids of a weight matrix: every group of neighbours along a row has a scale, and a zero point if affine.
//
// real = (code - zero) * scale. Symmetric codes run from -2^(bits-1), of 8 bits -127, to 2^(bits-1) - 1 and have zero
// 0; their scale may be negative, so that a group's largest weight can get the extra code. Affine codes and zeros run
// from 0 to 2^bits
// - 1. A code is the nearest one, ties to even, then clamped. Codes are stored as int8; affine codes of 8 bits as the
// same byte of uint8: code_value() reads either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ctk::quantization {

struct GridForm {
  int bits = 4;  // 2 .. 8
  bool is_affine = false;
  std::size_t group_size = 0;   // neighbours that share a scale; the last group may be shorter; 0: the whole row
  bool has_half_scales = true;  // every scale is an fp16 number
  bool is_positive = false;     // every scale is above 0: where activations are codes too

  int lowest_code() const { return is_affine ? 0 : bits == 8 ? -127 : -(1 << (bits - 1)); }
  int highest_code() const { return is_affine ? (1 << bits) - 1 : (1 << (bits - 1)) - 1; }
  int code_value(std::int8_t stored) const { return is_affine ? static_cast<std::uint8_t>(stored) : stored; }
  std::size_t group_length(std::size_t columns) const {
    return group_size == 0 || group_size > columns ? columns : group_size;
  }
  std::size_t groups(std::size_t columns) const {
    return columns == 0 ? 0 : (columns + group_length(columns) - 1) / group_length(columns);
  }
};

struct Grid {
  float scale = 1.0f;  // finite, not 0
  int zero = 0;
};

struct Grids {
  std::vector<float> scales;        // [rows, groups]
  std::vector<std::uint8_t> zeros;  // [rows, groups]; empty when symmetric

  Grid at(std::size_t index) const { return {scales[index], zeros.empty() ? 0 : zeros[index]}; }
};

// What a scale may be: an fp16 number if the form says so, finite and not 0; the sign stays.
float nearest_scale(float scale, const GridForm& form);

// Rounds [rows, columns] weights to the grids at hand.
std::vector<std::int8_t> round_to_grids(std::span<const float> weights, std::size_t rows, std::size_t columns,
                                        const GridForm& form, const Grids& grids);
// The weights that codes stand for.
std::vector<float> dequantize(std::span<const std::int8_t> codes, std::size_t rows, std::size_t columns,
                              const GridForm& form, const Grids& grids);

}  // namespace ctk::quantization
