// How random tests are drawn. The seed: 1, or CTK_TEST_SEED. Printed, so that a failure can be repeated.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace ctk::test {

inline std::uint64_t test_seed() {
  const char* text = std::getenv("CTK_TEST_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  std::printf("seed %llu (CTK_TEST_SEED changes it)\n", static_cast<unsigned long long>(seed));
  return seed;
}

// How many shapes a random test draws: as many as the fast tier has time for, or CTK_TEST_CASES (make test-slow: 10^6).
inline int cases(int fast) {
  const char* text = std::getenv("CTK_TEST_CASES");
  return text != nullptr ? std::atoi(text) : fast;
}

}  // namespace ctk::test
