#include "compress/prune/least_squares.h"

#include <algorithm>
#include <cmath>

#include "compress/quantize/triangular.h"

namespace ctk::pruning {
namespace {

constexpr std::size_t kChunk = 1024;

// [columns, rows] of [rows, columns]
std::vector<float> transposed(std::span<const float> matrix, std::size_t columns) {
  const std::size_t rows = matrix.size() / columns;
  std::vector<float> out(matrix.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) out[c * rows + r] = matrix[r * columns + c];
  }
  return out;
}

void add_to(std::vector<double>& sum, const std::vector<float>& part) {
  for (std::size_t i = 0; i < part.size(); ++i) sum[i] += static_cast<double>(part[i]);
}

}  // namespace

RowSums::RowSums(std::size_t k, std::size_t n)
    : k_(k), n_(n), xx_(k * k, 0.0), yx_(n * k, 0.0), x_(k, 0.0), y_(n, 0.0), yy_(n, 0.0) {}

void RowSums::add(std::span<const float> x, std::span<const float> y) {
  const std::size_t count = k_ == 0 ? 0 : x.size() / k_;
  std::vector<float> part;
  for (std::size_t first = 0; first < count; first += kChunk) {
    const std::size_t rows = std::min(kChunk, count - first);
    const std::vector<float> xt = transposed(x.subspan(first * k_, rows * k_), k_);
    part.assign(k_ * k_, 0.0f);
    quantization::multiply_transposed(xt, k_, xt, k_, rows, part);
    add_to(xx_, part);
    for (std::size_t i = 0; i < k_; ++i) {
      for (std::size_t r = 0; r < rows; ++r) x_[i] += static_cast<double>(xt[i * rows + r]);
    }
    if (n_ == 0) continue;
    const std::vector<float> yt = transposed(y.subspan(first * n_, rows * n_), n_);
    part.assign(n_ * k_, 0.0f);
    quantization::multiply_transposed(yt, n_, xt, k_, rows, part);
    add_to(yx_, part);
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t r = 0; r < rows; ++r) {
        const auto value = static_cast<double>(yt[i * rows + r]);
        y_[i] += value;
        yy_[i] += value * value;
      }
    }
  }
  rows_ += static_cast<double>(count);
}

std::optional<LinearMap> RowSums::solve(std::span<const float> prior, double ridge, bool has_intercept) const {
  if (rows_ == 0) return std::nullopt;
  const double centre = has_intercept ? 1.0 / rows_ : 0.0;
  std::vector<double> matrix(k_ * k_);
  double trace = 0;
  for (std::size_t i = 0; i < k_; ++i) {
    for (std::size_t j = 0; j < k_; ++j) matrix[i * k_ + j] = xx_[i * k_ + j] - centre * x_[i] * x_[j];
    trace += matrix[i * k_ + i];
  }
  // Inputs that never change say nothing: the weights stay as they are.
  const double damping = trace > 0 ? ridge * trace / static_cast<double>(k_) : 1.0;
  std::vector<float> lower(k_ * k_);
  for (std::size_t i = 0; i < k_; ++i) {
    matrix[i * k_ + i] += damping;
    for (std::size_t j = 0; j < k_; ++j) lower[i * k_ + j] = static_cast<float>(matrix[i * k_ + j] / rows_);
  }
  if (!quantization::factor_cholesky(lower, k_)) return std::nullopt;
  LinearMap map{std::vector<float>(n_ * k_), std::vector<float>(n_, 0.0f)};
  for (std::size_t o = 0; o < n_; ++o) {
    for (std::size_t i = 0; i < k_; ++i) {
      const double side = yx_[o * k_ + i] - centre * y_[o] * x_[i] + damping * static_cast<double>(prior[o * k_ + i]);
      map.weights[o * k_ + i] = static_cast<float>(side / rows_);
    }
  }
  quantization::solve_cholesky(lower, k_, map.weights, n_);
  for (std::size_t o = 0; o < n_ && has_intercept; ++o) {
    double mean = y_[o];
    for (std::size_t i = 0; i < k_; ++i) mean -= static_cast<double>(map.weights[o * k_ + i]) * x_[i];
    map.intercept[o] = static_cast<float>(mean / rows_);
  }
  const bool is_finite = std::ranges::all_of(map.weights, [](float w) { return std::isfinite(w); });
  return is_finite ? std::optional(std::move(map)) : std::nullopt;
}

double RowSums::error_of(const LinearMap& map) const {
  double error = 0, variance = 0;
  for (std::size_t o = 0; o < n_; ++o) {
    const float* w = map.weights.data() + o * k_;
    const auto b = static_cast<double>(map.intercept[o]);
    double square = yy_[o] + rows_ * b * b - 2 * b * y_[o];
    for (std::size_t i = 0; i < k_; ++i) {
      double row = 0;
      for (std::size_t j = 0; j < k_; ++j) row += xx_[i * k_ + j] * static_cast<double>(w[j]);
      square += static_cast<double>(w[i]) * (row - 2 * yx_[o * k_ + i] + 2 * b * x_[i]);
    }
    error += std::max(square, 0.0);
    variance += rows_ > 0 ? yy_[o] - y_[o] * y_[o] / rows_ : 0.0;
  }
  return variance > 0 ? error / variance : error > 0 ? HUGE_VAL : 0.0;
}

RowSums RowSums::of_columns(const LinearMap& map, std::span<const std::size_t> kept) const {
  const std::size_t n = map.intercept.size();
  RowSums sums(kept.size(), n);
  sums.rows_ = rows_;
  for (std::size_t a = 0; a < kept.size(); ++a) {
    sums.x_[a] = x_[kept[a]];
    for (std::size_t b = 0; b < kept.size(); ++b) sums.xx_[a * kept.size() + b] = xx_[kept[a] * k_ + kept[b]];
  }
  std::vector<double> row(k_);
  for (std::size_t o = 0; o < n; ++o) {
    const float* w = map.weights.data() + o * k_;
    const auto b = static_cast<double>(map.intercept[o]);
    for (std::size_t j = 0; j < k_; ++j) row[j] = b * x_[j];
    for (std::size_t i = 0; i < k_; ++i) {
      const auto weight = static_cast<double>(w[i]);
      for (std::size_t j = 0; j < k_; ++j) row[j] += weight * xx_[i * k_ + j];  // sum of y x_j
    }
    sums.y_[o] = b * rows_;
    sums.yy_[o] = b * sums.y_[o];
    for (std::size_t i = 0; i < k_; ++i) {
      const auto weight = static_cast<double>(w[i]);
      sums.y_[o] += weight * x_[i];
      sums.yy_[o] += weight * (row[i] + b * x_[i]);
    }
    for (std::size_t a = 0; a < kept.size(); ++a) sums.yx_[o * kept.size() + a] = row[kept[a]];
  }
  return sums;
}

}  // namespace ctk::pruning
