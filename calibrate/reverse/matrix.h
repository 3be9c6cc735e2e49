// Matrices on the way back: products over threads, transposes.
#pragma once

#include <cstddef>
#include <vector>

namespace ctk::calibrate {

// c [m, n] += a [m, k] b [n, k]^T, all rows dense. Sums of kernels/gemm_fp32, then c: the same bits at any number of
// threads.
void add_product(const float* a, const float* b, std::size_t m, std::size_t n, std::size_t k, float* c);

// [columns, rows] from [rows, columns].
std::vector<float> transposed(const float* from, std::size_t rows, std::size_t columns);

}  // namespace ctk::calibrate
