// The reference: packed weights are the canonical matrix, staged activations are the uint8 codes.
#include <cstring>

#include "kernels/gemm_w8a8/gemm_w8a8.h"
#include "kernels/requantize.h"

namespace ctk::kernels {
namespace {

std::size_t packed_bytes(std::size_t n, std::size_t k) {
  return n * k;
}

void pack(const std::int8_t* w, std::size_t n, std::size_t k, void* packed) {
  if (n * k != 0) std::memcpy(packed, w, n * k);
}

void stage(const std::uint8_t* x, std::size_t count, void* staged) {
  if (count != 0) std::memcpy(staged, x, count);
}

void run_staged(const GemmStaged& g, std::size_t n_begin, std::size_t n_end) {
  const std::size_t k = g.segments * g.segment_k;
  for (std::size_t n = n_begin; n < n_end; ++n) {
    for (std::size_t i = 0; i < g.m; ++i) {
      const std::int8_t* w = static_cast<const std::int8_t*>(g.packed) + n * k;
      std::uint32_t acc =
          static_cast<std::uint32_t>(g.epilogue.bias[n]);  // unsigned: wraps without undefined behaviour
      for (std::size_t s = 0; s < g.segments; ++s, w += g.segment_k) {
        const std::uint8_t* a = static_cast<const std::uint8_t*>(g.rows[i]) + g.offsets[s];
        std::uint32_t sum = 0;
        for (std::size_t j = 0; j < g.segment_k; ++j) sum += static_cast<std::uint32_t>(int{a[j]} * int{w[j]});
        acc += sum;
      }
      store_scalar(g.epilogue, static_cast<std::int32_t>(acc), i, n, g.c, g.c_stride);
    }
  }
}

}  // namespace

extern const GemmIntRow gemm_w8a8_scalar;
constinit const GemmIntRow gemm_w8a8_scalar{
    .isa = Isa::scalar,
    .name = "gemm_w8a8_1x1_scalar",
    .m_step = 1,
    .n_step = 1,
    .k_step = 1,
    .element_bytes = 1,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .stage = stage,
    .run_staged = run_staged,
};

}  // namespace ctk::kernels
