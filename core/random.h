// Seeded random numbers, the same on every machine. No global state.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ctk {

// xoshiro256** seeded by splitmix64 (Blackman and Vigna, 2018). A purpose name gives each use its own stream, so that
// adding one use does not shift the numbers of another.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::string_view purpose = "");
  std::uint64_t next();
  double uniform();                          // [0, 1)
  std::uint64_t below(std::uint64_t bound);  // [0, bound), unbiased; bound >= 1
  double normal();                           // mean 0, variance 1 (Box-Muller)
  // A permutation of 0..count-1 (Fisher-Yates).
  std::vector<std::size_t> permutation(std::size_t count);

 private:
  std::uint64_t state_[4];
};

}  // namespace ctk
