// rope: rotary position embedding of heads, in place or not (Su et al., 2021: RoFormer).
//
// A head's first 2 * pairs elements are turned, the others stay. With c = cosines[i], s = sines[i] of the token's
// position:
//   (a, b) -> (a * c - b * s, a * s + b * c), each product and sum rounded;
// (a, b) is (x[i], x[pairs + i]), or neighbours (x[2 i], x[2 i + 1]) where `interleaved`.
#pragma once

#include <cstddef>
#include <span>

#include "core/cpu_isa.h"

namespace ctk::kernels {

struct Rope {
  std::size_t heads = 0, size = 0, pairs = 0;  // of a token; 2 * pairs <= size
  bool interleaved = false;
};

struct RopeRow {
  Isa isa;
  const char* name;
  // One token: x, y [heads, size], y may be x; cosines, sines [pairs].
  void (*turn)(const Rope& rope, const float* x, const float* cosines, const float* sines, float* y);
};

#define CTK_KERNEL(symbol) extern const RopeRow symbol;
#include "kernels/rope/kernels.def"
#undef CTK_KERNEL

std::span<const RopeRow> rope_rows();

}  // namespace ctk::kernels
