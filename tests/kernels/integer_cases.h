// Random integer products and the slow, independent way to compute them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/conv_shape.h"
#include "kernels/epilogue.h"

namespace ctk::kernels::test {

using Random = std::mt19937;

inline int uniform(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

inline std::vector<std::uint8_t> random_codes(Random& random, std::size_t count) {
  std::vector<std::uint8_t> v(count);
  for (auto& c : v) c = static_cast<std::uint8_t>(random());
  return v;
}

inline std::vector<std::int8_t> random_weights(Random& random, std::size_t count, int low = -128, int high = 127) {
  std::vector<std::int8_t> v(count);
  for (auto& w : v) w = static_cast<std::int8_t>(uniform(random, low, high));
  return v;
}

// 64-byte aligned memory, as the contracts ask for, with guard bytes behind it.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes), storage_(bytes + 128, char{0x5a}) {}
  void* data() { return start(); }
  bool guard_is_whole() {
    for (std::size_t i = 0; i < 64; ++i) {
      if (start()[bytes_ + i] != 0x5a) return false;
    }
    return true;
  }

 private:
  char* start() { return storage_.data() + (64 - reinterpret_cast<std::uintptr_t>(storage_.data()) % 64) % 64; }
  std::size_t bytes_;
  std::vector<char> storage_;
};

// An epilogue with its arrays. Sums of about `depth` products land across the output range.
struct Epilogue {
  std::vector<std::int32_t> bias;
  std::vector<float> multiplier;
  std::vector<std::uint8_t> residual;
  EpilogueInt value;
  bool in_place = false;  // the residual is the output itself
};

inline Epilogue random_epilogue(Random& random, std::size_t rows, std::size_t columns, std::size_t depth) {
  Epilogue e;
  const float typical = 6000.0f * std::sqrt(static_cast<float>(depth));
  for (std::size_t i = 0; i < columns; ++i) {
    e.bias.push_back(uniform(random, -20000, 20000));
    e.multiplier.push_back(static_cast<float>(uniform(random, 1, 1000)) * 0.2f / typical);
  }
  // Now and then a product at the edge of what a row may convert the short way, or far beyond int32.
  if (uniform(random, 0, 7) == 0) {
    const float large[] = {1.0f, -1.0f, 3e4f, 1e9f};
    e.multiplier[static_cast<std::size_t>(uniform(random, 0, static_cast<int>(columns) - 1))] =
        large[uniform(random, 0, 3)];
  }
  EpilogueInt& v = e.value;
  v.to_float = uniform(random, 0, 3) == 0;
  v.zero_point =
      static_cast<std::uint8_t>(uniform(random, 0, 2) == 0 ? 255 * uniform(random, 0, 1) : uniform(random, 0, 255));
  if (uniform(random, 0, 1) == 0) {
    v.low = static_cast<std::uint8_t>(uniform(random, 0, 255));
    v.high = static_cast<std::uint8_t>(uniform(random, v.low, 255));
  }
  const float infinity = std::numeric_limits<float>::infinity();
  v.low_f = uniform(random, 0, 1) == 0 ? -infinity : 0.0f;
  v.high_f = uniform(random, 0, 1) == 0 ? infinity : 20.0f;
  if (!v.to_float && uniform(random, 0, 2) == 0) {
    v.residual.mid_zero_point = static_cast<std::uint8_t>(random());
    v.residual.residual_zero_point = static_cast<std::uint8_t>(random());
    v.residual.mid_ratio = static_cast<float>(uniform(random, 1, 300)) / 100.0f;
    v.residual.residual_ratio = static_cast<float>(uniform(random, 1, 300)) / 100.0f;
    v.residual.stride = columns;
    e.in_place = uniform(random, 0, 1) == 0;
    e.residual = random_codes(random, rows * columns);
  }
  return e;
}

inline double clamp_to(double v, double low, double high) {
  return v < low ? low : v > high ? high : v;
}

// The text of kernels/epilogue.h once more, in another hand: std::nearbyint and volatile floats, so that no rounding is
// skipped.
inline float expected_output(const Epilogue& e, std::int64_t sum, std::size_t row, std::size_t column) {
  const EpilogueInt& v = e.value;
  volatile float acc = static_cast<float>(static_cast<std::int32_t>(sum + e.bias[column]));
  volatile float t = acc * e.multiplier[column];
  if (v.to_float) return static_cast<float>(clamp_to(t, v.low_f, v.high_f));
  if (!e.residual.empty()) {
    const int mid = v.residual.mid_zero_point;
    const int q1 = mid + static_cast<int>(std::nearbyint(clamp_to(t, 0 - mid, 255 - mid)));
    volatile float a = static_cast<float>(q1 - mid) * v.residual.mid_ratio;
    const int r = e.residual[row * v.residual.stride + column];
    volatile float b = static_cast<float>(r - v.residual.residual_zero_point) * v.residual.residual_ratio;
    t = a + b;
  }
  return static_cast<float>(v.zero_point +
                            static_cast<int>(std::nearbyint(clamp_to(t, v.low - v.zero_point, v.high - v.zero_point))));
}

// Hands y, sized and typed for the case, to `body(epilogue, y)` and returns what it wrote.
template <class Body>
std::vector<float> run_into_output(const Epilogue& given, std::size_t count, Body&& body) {
  EpilogueInt e = given.value;
  e.bias = given.bias.data();
  e.multiplier = given.multiplier.data();
  std::vector<float> y(count);
  std::vector<std::uint8_t> codes(count);
  if (!given.residual.empty()) {
    if (given.in_place) codes = given.residual;
    e.residual.data = given.in_place ? codes.data() : given.residual.data();
  }
  body(e, e.to_float ? static_cast<void*>(y.data()) : codes.data());
  if (!e.to_float) y.assign(codes.begin(), codes.end());
  return y;
}

}  // namespace ctk::kernels::test
