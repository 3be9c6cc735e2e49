// Weights in panels of 16 columns, kStep of k side by side: [n / 16][k / kStep][16 columns][kStep] int8; columns past n
// and k past the end are zero. For ISA sources: everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ctk::kernels {
namespace {

constexpr std::size_t kColumns = 16;

template <std::size_t kStep>
inline std::size_t panel_steps(std::size_t k) {
  return (k + kStep - 1) / kStep;
}

template <std::size_t kStep>
inline std::size_t panel_bytes(std::size_t n, std::size_t k) {
  return (n + kColumns - 1) / kColumns * panel_steps<kStep>(k) * kColumns * kStep;
}

template <std::size_t kStep>
inline void pack_panels(const std::int8_t* w, std::size_t n, std::size_t k, void* packed) {
  std::int8_t* out = static_cast<std::int8_t*>(packed);
  for (std::size_t panel = 0; panel < n; panel += kColumns) {
    std::size_t step = 0;
    for (; panel + kColumns <= n && (step + 1) * kStep <= k; ++step, out += kColumns * kStep) {
      const std::int8_t* from = w + panel * k + step * kStep;
      for (std::size_t c = 0; c < kColumns; ++c) std::memcpy(out + c * kStep, from + c * k, kStep);
    }
    for (; step < panel_steps<kStep>(k); ++step) {
      for (std::size_t column = panel; column < panel + kColumns; ++column) {
        for (std::size_t j = step * kStep; j < (step + 1) * kStep; ++j) {
          *out++ = column < n && j < k ? w[column * k + j] : std::int8_t{0};
        }
      }
    }
  }
}

}  // namespace
}  // namespace ctk::kernels
