// A seeded orthogonal matrix that spreads every feature over all others: a randomized Hadamard matrix.
//
// n = 2^p * m with m odd: Q = S (H / 2^(p/2)) (x) O, with S signs, H Sylvester's Hadamard matrix of 2^p, O a random
// orthogonal matrix of m. Q Q^T = 1 up to double rounding.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace ctk::transform {

class Rotation {
 public:
  // `purpose` gives each use random numbers of its own.
  Rotation(std::size_t size, std::uint64_t seed, std::string_view purpose);

  std::size_t size() const { return size_; }
  // x Q in place, x: [size].
  void apply(std::vector<double>& x) const;
  // Every vector of `count` blocks of size() along dimension `axis` of a matrix or a vector: those that begin at
  // elements 0, size(), .. of it.
  void apply_along(Tensor& tensor, std::size_t axis) const;

 private:
  std::size_t size_, power_, odd_;  // size = power * odd
  std::vector<double> signs_;       // [size]
  std::vector<double> small_;       // [odd, odd], row-major
};

}  // namespace ctk::transform
