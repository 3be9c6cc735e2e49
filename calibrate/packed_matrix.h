// The right-hand side B of a float product A B^T, packed once for the best gemm_fp32 row of this processor.
// Sums are those of kernels/gemm_fp32: one fused multiply-add per k, ascending, the same bits everywhere.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace ctk::calibrate {

class PackedMatrix {
 public:
  PackedMatrix(std::size_t n, std::size_t k);  // packed_bytes of room, not filled

  std::size_t n() const { return n_; }
  std::size_t k() const { return k_; }

  void pack(const float* b);  // [n, k], rows k apart
  // c [m, n] = a [m, k] b^T, or c += the product when `adds` (the sum over k first, then c). Works on the calling
  // thread; calls on different rows may run at the same time.
  void multiply(const float* a, std::size_t a_stride, std::size_t m, float* c, std::size_t c_stride, bool adds) const;

 private:
  struct Free {
    void operator()(void* data) const;
  };
  std::size_t n_, k_;
  std::unique_ptr<void, Free> data_;
};

// a [m, k] b^T [k, n], b as [n, k]: [m, n], rows split over threads.
std::vector<float> times_transposed(std::span<const float> a, std::size_t m, std::span<const float> b, std::size_t n,
                                    std::size_t k);

}  // namespace ctk::calibrate
