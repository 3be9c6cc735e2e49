// gemm_fp16, gemm_bf16: scalar references and tables. The references widen one column's weights into scratch and hand
// them to gemm_fp32's.
#include "kernels/gemm_half/gemm_half.h"

#include <cstdint>

#include "core/dtype.h"

namespace ctk::kernels {
namespace {

std::size_t packed_bytes(std::size_t n, std::size_t k) {
  return n * k * sizeof(std::uint16_t);
}

std::size_t scratch_bytes(std::size_t k) {
  return k * sizeof(float);
}

template <std::uint16_t (*narrow)(float)>
void pack(const float* w, std::size_t n, std::size_t k, void* packed) {
  auto* out = static_cast<std::uint16_t*>(packed);
  for (std::size_t i = 0; i < n * k; ++i) out[i] = narrow(w[i]);
}

template <float (*widen)(std::uint16_t)>
void run(const GemmFloat& g, std::size_t n_begin, std::size_t n_end, void* scratch) {
  auto* column = static_cast<float*>(scratch);
  for (std::size_t n = n_begin; n < n_end; ++n) {
    const std::uint16_t* stored = static_cast<const std::uint16_t*>(g.packed) + n * g.k;
    for (std::size_t i = 0; i < g.k; ++i) column[i] = widen(stored[i]);
    GemmFloat one = g;
    one.packed = column;
    one.c = g.c + n;
    if (g.epilogue.bias != nullptr) one.epilogue.bias = g.epilogue.bias + n;
    if (g.epilogue.residual != nullptr) one.epilogue.residual = g.epilogue.residual + n;
    gemm_fp32_1x1_scalar.run(one, 0, 1, nullptr);
  }
}

}  // namespace

const GemmFloatRow gemm_fp16_1x1_scalar = {
    Isa::scalar, "gemm_fp16_1x1_scalar", 1, 1, packed_bytes, pack<float_to_half>, scratch_bytes, run<half_to_float>};
const GemmFloatRow gemm_bf16_1x1_scalar = {
    Isa::scalar,   "gemm_bf16_1x1_scalar", 1, 1, packed_bytes, pack<float_to_bfloat>,
    scratch_bytes, run<bfloat_to_float>};

#define CTK_KERNEL(symbol) symbol,
std::span<const GemmFloatRow> gemm_fp16_rows() {
  static const GemmFloatRow rows[] = {
#include "kernels/gemm_half/fp16.def"
  };
  return rows;
}

std::span<const GemmFloatRow> gemm_bf16_rows() {
  static const GemmFloatRow rows[] = {
#include "kernels/gemm_half/bf16.def"
  };
  return rows;
}
#undef CTK_KERNEL

}  // namespace ctk::kernels
