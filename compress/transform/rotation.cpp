#include "compress/transform/rotation.h"

#include <cmath>

#include "core/parallel.h"
#include "core/random.h"

namespace ctk::transform {
namespace {

// Rows of normal numbers made orthogonal, twice over so that double rounding is all that is left.
std::vector<double> random_orthogonal(std::size_t n, Random& random) {
  std::vector<double> q(n * n);
  for (double& value : q) value = random.normal();
  for (std::size_t r = 0; r < n; ++r) {
    double* row = q.data() + r * n;
    for (int sweep = 0; sweep < 2; ++sweep) {
      for (std::size_t p = 0; p < r; ++p) {
        const double* other = q.data() + p * n;
        double dot = 0;
        for (std::size_t i = 0; i < n; ++i) dot += row[i] * other[i];
        for (std::size_t i = 0; i < n; ++i) row[i] -= dot * other[i];
      }
      double norm = 0;
      for (std::size_t i = 0; i < n; ++i) norm += row[i] * row[i];
      for (std::size_t i = 0; i < n; ++i) row[i] /= std::sqrt(norm);
    }
  }
  return q;
}

}  // namespace

Rotation::Rotation(std::size_t size, std::uint64_t seed, std::string_view purpose)
    : size_(size), power_(1), odd_(size) {
  while (odd_ > 1 && odd_ % 2 == 0) odd_ /= 2, power_ *= 2;
  Random random(seed, purpose);
  signs_.resize(size);
  for (double& sign : signs_) sign = random.below(2) == 0 ? -1.0 : 1.0;
  small_ = odd_ == 1 ? std::vector<double>{1.0} : random_orthogonal(odd_, random);
}

void Rotation::apply(std::vector<double>& x) const {
  for (std::size_t i = 0; i < size_; ++i) x[i] *= signs_[i];
  for (std::size_t half = 1; half < power_; half *= 2) {
    const std::size_t step = half * odd_;
    for (std::size_t block = 0; block < size_; block += 2 * step) {
      for (std::size_t i = block; i < block + step; ++i) {
        const double a = x[i], b = x[i + step];
        x[i] = a + b;
        x[i + step] = a - b;
      }
    }
  }
  const double share = 1 / std::sqrt(static_cast<double>(power_));
  std::vector<double> mixed(odd_);
  for (std::size_t block = 0; block < size_; block += odd_) {
    for (std::size_t j = 0; j < odd_; ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < odd_; ++i) sum += x[block + i] * small_[i * odd_ + j];
      mixed[j] = sum * share;
    }
    for (std::size_t j = 0; j < odd_; ++j) x[block + j] = mixed[j];
  }
}

void Rotation::apply_along(Tensor& tensor, std::size_t axis) const {
  const Shape& shape = tensor.shape();
  const auto extent = static_cast<std::size_t>(shape[axis]);
  const std::size_t stride = axis + 1 < shape.size() ? static_cast<std::size_t>(shape[axis + 1]) : 1;
  const std::size_t lines = tensor.size() / extent, blocks = extent / size_;
  const auto values = tensor.mutable_values<float>();
  parallel_for(lines, 16, [&](std::size_t begin, std::size_t end) {
    std::vector<double> x(size_);
    for (std::size_t line = begin; line < end; ++line) {
      const std::size_t first = axis + 1 < shape.size() ? line : line * extent;
      for (std::size_t b = 0; b < blocks; ++b) {
        const std::size_t from = first + b * size_ * stride;
        for (std::size_t i = 0; i < size_; ++i) x[i] = static_cast<double>(values[from + i * stride]);
        apply(x);
        for (std::size_t i = 0; i < size_; ++i) values[from + i * stride] = static_cast<float>(x[i]);
      }
    }
  });
}

}  // namespace ctk::transform
