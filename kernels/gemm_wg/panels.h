// The packed weights of every vector row: panels of 16 columns, one after the other, each
//
//   scales       fp16  [groups][16]                         padded to 64 bytes
//   zero points  uint8 [groups][16]    affine only          padded to 64 bytes
//   codes        [ceil(k / 16)] steps of 32 * bits bytes    padded to 64 bytes
//
// that is bits / 8 + 2 / group_size (affine: + 3 / group_size) bytes a weight. A step holds 16 columns by four quads of
// four k, the bits of a code spread over planes, lowest bits first. 8 bits are one plane, other widths those of
// 4, 2 and 1 bits that add up to them:
//
//   bytes    [4 quads][16 columns][4]    byte j of quad i: k = 16 s + 4 i + j
//   nibbles  [2][16 columns][4]          quads 2 p (low) and 2 p + 1 (high)
//   crumbs   [16 columns][4]             quad i in bits 2 i and 2 i + 1
//   ones     [8 columns][4]              quad i of columns c and c + 8 in bits 2 i and 2 i + 1
//
// so a vector of a plane becomes operands of 8-bit products by shifts and masks. Columns past n and k past the end have
// code 0, columns past n also scale and zero point 0.
//
// For ISA sources: everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "kernels/gemm_wg/gemm_wg.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kColumns = 16, kQuad = 4, kQuads = 4, kStep = kQuads * kQuad;
constexpr std::size_t kQuadBytes = kColumns * kQuad;  // of all columns, a byte a code

inline std::size_t round_up_64(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

inline std::size_t smaller(std::size_t a, std::size_t b) {
  return a < b ? a : b;
}

constexpr std::size_t step_bytes_of(int bits) {
  return 32 * static_cast<std::size_t>(bits);
}

// Where the planes of a step begin; a width without such a plane has none to read there.
constexpr std::size_t crumbs_of(int bits) {
  return (bits & 4) != 0 ? 2 * kQuadBytes : 0;
}
constexpr std::size_t ones_of(int bits) {
  return crumbs_of(bits) + ((bits & 2) != 0 ? kQuadBytes : 0);
}

// Where the parts of a panel lie, and how long all of it is. Groups but the last have group_steps steps.
struct PanelLayout {
  int bits;
  std::size_t groups, group_steps, steps, step_bytes;
  std::size_t zero_points, codes, bytes;
};

inline PanelLayout layout_of(const WgShape& s) {
  PanelLayout p;
  p.bits = s.bits;
  p.groups = s.k == 0 ? 0 : (s.k + s.group() - 1) / s.group();
  p.group_steps = (s.group() + kStep - 1) / kStep;
  p.steps = (s.k + kStep - 1) / kStep;
  p.step_bytes = step_bytes_of(s.bits);
  p.zero_points = round_up_64(p.groups * kColumns * sizeof(std::uint16_t));
  p.codes = p.zero_points + (s.is_affine ? round_up_64(p.groups * kColumns) : 0);
  p.bytes = p.codes + round_up_64(p.steps * p.step_bytes);
  return p;
}

inline std::size_t packed_bytes(const WgShape& s) {
  return (s.n + kColumns - 1) / kColumns * layout_of(s).bytes;
}

inline std::uint32_t word_at(const unsigned char* at) {
  std::uint32_t word;
  __builtin_memcpy(&word, at, sizeof(word));
  return word;
}

inline void put_word(unsigned char* to, std::uint32_t word) {
  __builtin_memcpy(to, &word, sizeof(word));
}

// Bits kShift and up of quads, kWidth of each code, side by side in their bytes.
template <int kShift, int kWidth, std::size_t kCount>
inline std::uint32_t planed(const std::uint32_t* quads) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    word |= (quads[i] >> kShift & 0x01010101u * ((1u << kWidth) - 1)) << kWidth * i;
  }
  return word;
}

// A step from its columns' u, a byte each, columns `pitch` apart.
template <int kBits>
inline void pack_step(const unsigned char* codes, std::size_t pitch, unsigned char* step) {
  for (std::size_t c = 0; c < kColumns; ++c, codes += pitch) {
    std::uint32_t quads[kQuads];
    __builtin_memcpy(quads, codes, sizeof(quads));
    unsigned char* to = step + c * kQuad;
    if constexpr (kBits == 8) {
      for (std::size_t i = 0; i < kQuads; ++i) put_word(to + i * kQuadBytes, quads[i]);
    }
    if constexpr ((kBits & 4) != 0) {
      put_word(to, planed<0, 4, 2>(quads));
      put_word(to + kQuadBytes, planed<0, 4, 2>(quads + 2));
    }
    if constexpr ((kBits & 2) != 0) put_word(to + crumbs_of(kBits), planed<kBits & 4, 2, 4>(quads));
    if constexpr ((kBits & 1) != 0) {
      // Columns c and c + 8 share a word, every second bit of it.
      std::uint32_t word = 0;
      for (std::size_t i = 0; i < kQuads; ++i) word |= (quads[i] >> (kBits & 6) & 0x01010101u) << 2 * i;
      unsigned char* shared = step + ones_of(kBits) + c % 8 * kQuad;
      put_word(shared, c < 8 ? word : word_at(shared) | word << 1);
    }
  }
}

// What pack_step() wrote: u of quad i of column c, one a byte.
inline std::uint32_t packed_quad(int bits, const unsigned char* step, std::size_t c, std::size_t i) {
  if (bits == 8) return word_at(step + i * kQuadBytes + c * kQuad);
  std::uint32_t quad = 0;
  int taken = 0;
  if ((bits & 4) != 0) {
    quad = word_at(step + i / 2 * kQuadBytes + c * kQuad) >> i % 2 * 4 & 0x0f0f0f0fu;
    taken = 4;
  }
  if ((bits & 2) != 0) {
    quad |= (word_at(step + crumbs_of(bits) + c * kQuad) >> 2 * i & 0x03030303u) << taken;
    taken += 2;
  }
  if ((bits & 1) != 0) {
    quad |= (word_at(step + ones_of(bits) + c % 8 * kQuad) >> (2 * i + c / 8) & 0x01010101u) << taken;
  }
  return quad;
}

inline void unpack_row(const WgShape& s, const void* packed, std::size_t n, float* out) {
  const PanelLayout layout = layout_of(s);
  const unsigned char* panel = static_cast<const unsigned char*>(packed) + n / kColumns * layout.bytes;
  const std::size_t c = n % kColumns;
  for (std::size_t k = 0; k < s.k; k += kQuad) {
    const std::size_t at = k / s.group() * kColumns + c;  // quads do not cross groups
    std::uint16_t half;
    __builtin_memcpy(&half, panel + 2 * at, sizeof(half));
    const float scale = half_to_float(half);
    const int zero_point = s.is_affine ? panel[layout.zero_points + at] : 1 << (s.bits - 1);
    const unsigned char* step = panel + layout.codes + k / kStep * layout.step_bytes;
    const std::uint32_t quad = packed_quad(s.bits, step, c, k % kStep / kQuad);
    for (std::size_t j = 0; j < kQuad && k + j < s.k; ++j) {
      out[k + j] = scale * static_cast<float>(static_cast<int>(quad >> 8 * j & 255u) - zero_point);
    }
  }
}

// u of one column from k on, a byte each.
inline void unpack_column(const WgMatrix& w, std::size_t n, std::size_t k, std::size_t count, unsigned char* out) {
  const unsigned half = 1u << (w.shape.bits - 1);
  std::int8_t* codes = reinterpret_cast<std::int8_t*>(out);
  if (w.held != nullptr && w.shape.bits != 8) {
    unpack_elements(w.held, code_dtype(w.shape.bits), n * w.shape.k + k, count, codes);
  } else if (w.held != nullptr) {
    __builtin_memcpy(codes, static_cast<const std::int8_t*>(w.held) + n * w.shape.k + k, count);
  } else {
    __builtin_memcpy(codes, w.codes + n * w.row_codes + k, count);
  }
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<unsigned char>((out[i] & (2 * half - 1)) ^ half);
}

constexpr std::size_t kUnpackedSteps = 16;  // of all columns at a time: they stay in the first-level cache

// Eight held codes of 4 bits as a word of their plane: byte j is u[j], and u[4 + j] in the high half.
inline std::uint32_t nibbles_of(std::uint32_t held) {
  std::uint32_t word = held ^ 0x88888888u;
  std::uint32_t moved = (word ^ word >> 8) & 0x0000ff00u;  // the bytes in the middle change places,
  word ^= moved ^ moved << 8;
  moved = (word ^ word >> 4) & 0x00f000f0u;  // then the nibbles in the middle of each half
  return word ^ moved ^ moved << 4;
}

// The whole steps of a panel of held codes of 4 bits, without a byte for each; the k it has come to. k is even.
inline std::size_t pack_nibbles(const WgMatrix& w, std::size_t column, std::size_t columns, unsigned char* to) {
  constexpr std::size_t kWords = 2 * kUnpackedSteps;
  std::uint32_t words[kColumns][kWords] = {};
  const unsigned char* held = static_cast<const unsigned char*>(w.held) + column * w.shape.k / 2;
  const std::size_t all = w.shape.k / kStep * 2;
  for (std::size_t first = 0; first < all; first += kWords, to += kWords * kQuadBytes) {
    const std::size_t count = smaller(kWords, all - first);
    for (std::size_t c = 0; c < columns; ++c) {
      const unsigned char* from = held + c * w.shape.k / 2 + 4 * first;
      for (std::size_t i = 0; i < count; ++i) words[c][i] = nibbles_of(word_at(from + 4 * i));
    }
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t c = 0; c < kColumns; ++c) put_word(to + i * kQuadBytes + c * kQuad, words[c][i]);
    }
  }
  return all / 2 * kStep;
}

// The codes of columns [column, column + columns) of a panel.
template <int kBits>
inline void pack_codes(const WgMatrix& w, std::size_t column, std::size_t columns, unsigned char* to) {
  constexpr std::size_t kPitch = kUnpackedSteps * kStep;
  unsigned char codes[kColumns * kPitch];
  for (std::size_t i = columns * kPitch; i < sizeof(codes); ++i) codes[i] = 0;
  std::size_t k = 0;
  if (kBits == 4 && w.held != nullptr && w.shape.k % 2 == 0) k = pack_nibbles(w, column, columns, to);
  to += k / kStep * step_bytes_of(kBits);
  for (; k < w.shape.k; k += kPitch) {
    const std::size_t count = smaller(kPitch, w.shape.k - k), steps = (count + kStep - 1) / kStep;
    for (std::size_t c = 0; c < columns; ++c) {
      unsigned char* out = codes + c * kPitch;
      unpack_column(w, column + c, k, count, out);
      for (std::size_t i = count; i < steps * kStep; ++i) out[i] = 0;
    }
    for (std::size_t s = 0; s < steps; ++s, to += step_bytes_of(kBits)) pack_step<kBits>(codes + s * kStep, kPitch, to);
  }
}

inline void pack_codes(const WgMatrix& w, std::size_t column, std::size_t columns, unsigned char* to) {
  switch (w.shape.bits) {
    case 2:
      return pack_codes<2>(w, column, columns, to);
    case 3:
      return pack_codes<3>(w, column, columns, to);
    case 4:
      return pack_codes<4>(w, column, columns, to);
    case 5:
      return pack_codes<5>(w, column, columns, to);
    case 6:
      return pack_codes<6>(w, column, columns, to);
    default:
      return pack_codes<8>(w, column, columns, to);
  }
}

inline void pack(const WgMatrix& w, std::size_t n_begin, std::size_t n_end, void* packed) {
  const PanelLayout layout = layout_of(w.shape);
  const std::size_t code_bytes = layout.steps * layout.step_bytes;
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const std::size_t columns = smaller(kColumns, n_end - column);
    unsigned char* panel = static_cast<unsigned char*>(packed) + column / kColumns * layout.bytes;
    for (std::size_t i = 0; i < layout.codes; ++i) panel[i] = 0;
    for (std::size_t i = layout.codes + code_bytes; i < layout.bytes; ++i) panel[i] = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t g = 0; g < layout.groups; ++g) {
        const std::size_t from = (column + c) * layout.groups + g, to = g * kColumns + c;
        panel[2 * to] = static_cast<unsigned char>(w.scales[from] & 255u);
        panel[2 * to + 1] = static_cast<unsigned char>(w.scales[from] >> 8);
        if (w.shape.is_affine) {
          panel[layout.zero_points + to] = static_cast<unsigned char>(w.zero_points[from] + (1 << (w.shape.bits - 1)));
        }
      }
    }
    pack_codes(w, column, columns, panel + layout.codes);
  }
}

// Codes of quad I of a step, a byte each, in the vectors of an instruction set, which gives as `Planes`:
//   Vector            so many bytes of codes, whole columns of four
//   load(at)          a vector
//   ones(at, part)    the plane of ones for columns of part `part`, quad i in bit 2 i
//   shift<S>(v)       moves bits of each byte by S to the left, or -S to the right; what neighbours send is arbitrary
//   masked(v, mask)   each byte and mask
//   either(a, b)      a | b
// part: which of the kQuadBytes / sizeof(Vector) vectors of a quad. Nothing here returns a vector from a template: the
// emulation's compiler warns of that.
template <class Planes, int kBits, int I>
[[gnu::always_inline]] inline void quad_codes(const char* step, std::size_t part, typename Planes::Vector& codes) {
  using Vector = typename Planes::Vector;
  const std::size_t place = part * sizeof(Vector);
  if constexpr (kBits == 8) {
    codes = Planes::load(step + I * kQuadBytes + place);
  } else if constexpr (kBits == 3) {  // two quads at once, in the halves of a byte
    Vector crumbs = Planes::load(step + place), ones = Planes::ones(step + ones_of(kBits), part);
    Planes::template shift<-2 * (I % 2)>(crumbs);
    Planes::template shift<2 - 2 * (I % 2)>(ones);
    codes = Planes::either(Planes::masked(crumbs, 0x33), Planes::masked(ones, 0x44));
    Planes::template shift < I<2 ? 0 : -4>(codes);
    codes = Planes::masked(codes, 0x0f);
  } else if constexpr (kBits == 2) {
    codes = Planes::load(step + place);
    Planes::template shift<-2 * I>(codes);
    codes = Planes::masked(codes, 0x03);
  } else {
    codes = Planes::load(step + I / 2 * kQuadBytes + place);
    Planes::template shift<I % 2 == 0 ? 0 : -4>(codes);
    codes = Planes::masked(codes, 0x0f);
    if constexpr (kBits != 4) {
      Vector high =
          kBits == 5 ? Planes::ones(step + ones_of(kBits), part) : Planes::load(step + crumbs_of(kBits) + place);
      Planes::template shift<4 - 2 * I>(high);
      codes = Planes::either(codes, Planes::masked(high, kBits == 5 ? 0x10 : 0x30));
    }
  }
}

}  // namespace
}  // namespace ctk::kernels
