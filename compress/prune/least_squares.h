// Ridge regression with intercept, from sums over rows: minimises
//   sum over rows of |W x + b - y|^2 + ridge * trace(C) / k * |W - W0|^2,   C = sum of (x - mean)(x - mean)^T
// In:  rows x [k], y [n], as many chunks as there are; W0 [n, k].
// Out: W [n, k], b [n] (0 where no intercept is wanted; x and y are then not centred).
// Cost: rows * k * (k + n) multiply-adds, then k^3 / 3 + n k^2. Sums of 1024 rows in float, their total in double.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace ctk::pruning {

struct LinearMap {
  std::vector<float> weights;    // [n, k]
  std::vector<float> intercept;  // [n]
};

class RowSums {
 public:
  RowSums(std::size_t k, std::size_t n);

  std::size_t k() const { return k_; }
  std::size_t n() const { return n_; }
  double rows() const { return rows_; }
  // x: [rows, k], y: [rows, n]; n may be 0. Finite.
  void add(std::span<const float> x, std::span<const float> y);
  // Nothing when no rows are known or the matrix cannot be factored.
  std::optional<LinearMap> solve(std::span<const float> prior, double ridge, bool has_intercept) const;
  // Mean squared error of a map on these rows, over the variance of y. 0 for a y that never changes and is met.
  double error_of(const LinearMap& map) const;

  // The sums of y = W x + b, where y is `map` of these very x, for the columns `kept` of x alone.
  RowSums of_columns(const LinearMap& map, std::span<const std::size_t> kept) const;
  // sum over rows of x_i x_j
  double product(std::size_t i, std::size_t j) const { return xx_[i * k_ + j]; }

 private:
  std::size_t k_, n_;
  double rows_ = 0;
  std::vector<double> xx_, yx_, x_, y_, yy_;  // [k, k], [n, k], [k], [n], [n]
};

}  // namespace ctk::pruning
