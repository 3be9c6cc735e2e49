// Cholesky factors and triangular solves of large matrices, in blocks whose products are gemm_fp32.
//
// Diagonal blocks are factored in double. The same bits for any number of threads.
// Cost: size^3 / 3 multiply-adds and one packed copy for the factor; rows * size^2 for a solve.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace ctk::quantization {

// Lower L with A = L L^T, in place: `matrix` [size, size] holds A (its lower triangle is read), afterwards L with zeros
// above the diagonal. False when a pivot is not positive and finite; `matrix` is then of no use.
bool factor_cholesky(std::span<float> matrix, std::size_t size);

// X (L L^T)^-1 in place; x: [rows, size]. lower: [size, size] by factor_cholesky.
void solve_cholesky(std::span<const float> lower, std::size_t size, std::span<float> x, std::size_t rows);

// c [m, n] = a [m, k] b [n, k]^T, split over threads.
void multiply_transposed(std::span<const float> a, std::size_t m, std::span<const float> b, std::size_t n,
                         std::size_t k, std::span<float> c);
// The same where b is made row by row as it is needed: make(row, out [k]). No whole b is ever held.
void multiply_transposed(std::span<const float> a, std::size_t m, std::size_t n, std::size_t k, std::span<float> c,
                         const std::function<void(std::size_t row, float* out)>& make);

}  // namespace ctk::quantization
