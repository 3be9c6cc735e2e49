// The packed weights of every vector row: panels of 16 columns, one after the other, each
//
//   scales       fp16  [groups][16]                         padded to 64 bytes
//   zero points  uint8 [groups][16]    affine only          padded to 64 bytes
//   codes        [ceil(k / 8)][16 columns][4 bytes]         byte j of step s: k = 8 s + j in the low nibble,
//                                                           k = 8 s + 4 + j in the high one
//
// that is 0.5 + 2 / group_size (affine: + 3 / group_size) bytes a weight. Columns past n and k past the end have code
// 0, columns past n also scale and zero point 0. 32 bytes of codes are two multiply operands for 8 columns (64: for
// 16): the low nibbles against four activations in every lane, the high nibbles against the next four.
//
// For ISA sources: everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm_wg/gemm_wg.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kColumns = 16, kQuad = 4, kStep = 8, kStepBytes = 64;

inline std::size_t round_up_64(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

inline std::size_t smaller(std::size_t a, std::size_t b) {
  return a < b ? a : b;
}

// Where the parts of a panel lie, and how long all of it is. Groups but the last have group_steps steps.
struct PanelLayout {
  std::size_t groups, group_steps, steps;
  std::size_t zero_points, codes, bytes;
};

inline PanelLayout layout_of(const WgShape& s) {
  PanelLayout p;
  p.groups = s.k == 0 ? 0 : (s.k + s.group() - 1) / s.group();
  p.group_steps = (s.group() + kStep - 1) / kStep;
  p.steps = (s.k + kStep - 1) / kStep;
  p.zero_points = round_up_64(p.groups * kColumns * sizeof(std::uint16_t));
  p.codes = p.zero_points + (s.is_affine ? round_up_64(p.groups * kColumns) : 0);
  p.bytes = p.codes + p.steps * kStepBytes;
  return p;
}

inline std::size_t packed_bytes(const WgShape& s) {
  return (s.n + kColumns - 1) / kColumns * layout_of(s).bytes;
}

inline unsigned code_at(const WgMatrix& w, std::size_t n, std::size_t k) {
  const std::size_t nibble = n * w.row_codes + k;
  const unsigned code = w.codes[nibble / 2] >> (nibble % 2 * 4) & 15u;
  return w.is_signed ? code ^ 8u : code;
}

// The low four nibbles, one to a byte.
inline std::uint32_t spread(std::uint32_t nibbles) {
  const std::uint32_t bytes = (nibbles | nibbles << 8) & 0x00ff00ffu;
  return (bytes | bytes << 4) & 0x0f0f0f0fu;
}

// Four bytes of a panel: k .. k + 7 of one column. k is even.
inline std::uint32_t step_at(const WgMatrix& w, std::size_t n, std::size_t k) {
  const std::size_t nibble = n * w.row_codes + k;
  std::uint32_t codes = 0;
  if (nibble % 2 == 0 && k + kStep <= w.shape.k) {
    __builtin_memcpy(&codes, w.codes + nibble / 2, sizeof(codes));
    if (w.is_signed) codes ^= 0x88888888u;
  } else {
    for (std::size_t j = 0; j < kStep && k + j < w.shape.k; ++j) {
      codes |= static_cast<std::uint32_t>(code_at(w, n, k + j)) << 4 * j;
    }
  }
  return spread(codes & 0xffffu) | spread(codes >> 16) << 4;
}

inline void pack(const WgMatrix& w, std::size_t n_begin, std::size_t n_end, void* packed) {
  const PanelLayout layout = layout_of(w.shape);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const std::size_t columns = smaller(kColumns, n_end - column);
    unsigned char* panel = static_cast<unsigned char*>(packed) + column / kColumns * layout.bytes;
    for (std::size_t i = 0; i < layout.codes; ++i) panel[i] = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t g = 0; g < layout.groups; ++g) {
        const std::size_t from = (column + c) * layout.groups + g, to = g * kColumns + c;
        panel[2 * to] = static_cast<unsigned char>(w.scales[from] & 255u);
        panel[2 * to + 1] = static_cast<unsigned char>(w.scales[from] >> 8);
        if (w.shape.is_affine) panel[layout.zero_points + to] = w.zero_points[from];
      }
    }
    unsigned char* out = panel + layout.codes;
    for (std::size_t first = 0; first < layout.steps * kStep; first += kStep) {
      for (std::size_t c = 0; c < kColumns; ++c, out += kQuad) {
        const std::uint32_t step = c < columns ? step_at(w, column + c, first) : 0;
        __builtin_memcpy(out, &step, kQuad);
      }
    }
  }
}

}  // namespace
}  // namespace ctk::kernels
