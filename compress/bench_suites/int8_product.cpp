#include "compress/bench_suites/int8_product.h"

#include <limits>

#include "core/cpu_isa.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/tensor.h"
#include "kernels/select.h"

namespace ctk::pipeline {

Result<Int8Product> Int8Product::make(std::size_t m, std::size_t k, bool to_float) {
  CTK_TRY(const std::vector<Isa> isas, allowed_isas());
  Int8Product made;
  made.row_ = &kernels::select(kernels::gemm_w8a8_rows(), isas);
  const kernels::GemmIntRow& row = *made.row_;
  Random random(0, "bench gemm8");
  std::vector<std::int8_t> w(k * k);
  for (std::int8_t& code : w) code = static_cast<std::int8_t>(static_cast<int>(random.below(255)) - 127);
  made.x_.resize(m * k);
  for (std::uint8_t& code : made.x_) code = static_cast<std::uint8_t>(random.below(256));
  const std::size_t packed_bytes = row.packed_bytes(k, (k + row.k_step - 1) / row.k_step * row.k_step);
  const std::size_t scratch_bytes = kernels::gemm_int_scratch_bytes(row, k) * static_cast<std::size_t>(threads());
  made.packed_ = allocate_aligned(packed_bytes);
  made.scratch_ = allocate_aligned(scratch_bytes);
  made.y_ = allocate_aligned(m * k * sizeof(float));
  if (made.packed_ == nullptr || made.scratch_ == nullptr || made.y_ == nullptr) {
    return input_error("an int8 product: expected " + std::to_string(packed_bytes + scratch_bytes + 4 * m * k) +
                       " bytes of free memory, found less. Close other programs, or use --quick");
  }
  row.pack(w.data(), k, k, made.packed_.get());
  made.bias_.assign(k, 0);
  made.multiplier_.assign(k, 1e-4f);
  kernels::GemmInt& g = made.product_;
  g.m = m;
  g.n = g.k = g.a_stride = g.c_stride = k;
  g.a = made.x_.data();
  g.packed = made.packed_.get();
  g.epilogue.bias = made.bias_.data();
  g.epilogue.multiplier = made.multiplier_.data();
  g.epilogue.zero_point = 128;
  g.epilogue.to_float = to_float;
  g.epilogue.low_f = -std::numeric_limits<float>::infinity();
  g.epilogue.high_f = std::numeric_limits<float>::infinity();
  g.c = made.y_.get();
  return made;
}

}  // namespace ctk::pipeline
