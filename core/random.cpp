#include "core/random.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace ctk {
namespace {

std::uint64_t rotate_left(std::uint64_t x, int k) {
  return (x << k) | (x >> (64 - k));
}

std::uint64_t splitmix64(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed, std::string_view purpose) {
  std::uint64_t state = seed;
  if (!purpose.empty()) {
    // The name is hashed apart from the seed (FNV-1a) and mixed, or seed 1 with "b" would equal seed 2 with "a".
    std::uint64_t name = 0xcbf29ce484222325u;
    for (char c : purpose) name = (name ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    state ^= splitmix64(name);
  }
  for (std::uint64_t& word : state_) word = splitmix64(state);
}

std::uint64_t Random::next() {
  const std::uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = rotate_left(state_[3], 45);
  return result;
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::uint64_t Random::below(std::uint64_t bound) {
  const std::uint64_t reject_under = (0 - bound) % bound;  // 2^64 mod bound values would be favoured
  for (;;) {
    const std::uint64_t value = next();
    if (value >= reject_under) return value % bound;
  }
}

double Random::normal() {
  const double u = 1.0 - uniform();  // (0, 1]: the logarithm stays finite
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
}

std::vector<std::size_t> Random::permutation(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[below(i)]);
  return order;
}

}  // namespace ctk
