// rope: scalar reference and table of rows.
#include "kernels/rope/rope.h"

namespace ctk::kernels {
namespace {

void turn(const Rope& rope, const float* x, const float* cosines, const float* sines, float* y) {
  const std::size_t step = rope.interleaved ? 2 : 1, apart = rope.interleaved ? 1 : rope.pairs;
  for (std::size_t head = 0; head < rope.heads; ++head, x += rope.size, y += rope.size) {
    for (std::size_t i = 0; i < rope.pairs; ++i) {
      const float a = x[step * i], b = x[step * i + apart];
      y[step * i] = a * cosines[i] - b * sines[i];
      y[step * i + apart] = a * sines[i] + b * cosines[i];
    }
    for (std::size_t i = 2 * rope.pairs; i < rope.size; ++i) y[i] = x[i];
  }
}

}  // namespace

const RopeRow rope_scalar = {Isa::scalar, "rope_scalar", turn};

std::span<const RopeRow> rope_rows() {
  static const RopeRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/rope/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

}  // namespace ctk::kernels
