// The weight layout of rows that multiply four k at a time: [n / 16][k / 4][16 columns][4 k] int8; columns past n and k
// past the end are zero. Activations are staged as they are. For ISA sources: everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ctk::kernels {
namespace {

constexpr std::size_t kColumns = 16, kQuad = 4;

inline std::size_t quads_of(std::size_t k) {
  return (k + kQuad - 1) / kQuad;
}

inline std::size_t packed_bytes(std::size_t n, std::size_t k) {
  return (n + kColumns - 1) / kColumns * quads_of(k) * kColumns * kQuad;
}

inline void pack(const std::int8_t* w, std::size_t n, std::size_t k, void* packed) {
  std::int8_t* out = static_cast<std::int8_t*>(packed);
  for (std::size_t panel = 0; panel < n; panel += kColumns) {
    std::size_t quad = 0;
    for (; panel + kColumns <= n && (quad + 1) * kQuad <= k; ++quad, out += kColumns * kQuad) {
      const std::int8_t* from = w + panel * k + quad * kQuad;
      for (std::size_t c = 0; c < kColumns; ++c) std::memcpy(out + c * kQuad, from + c * k, kQuad);
    }
    for (; quad < quads_of(k); ++quad) {
      for (std::size_t column = panel; column < panel + kColumns; ++column) {
        for (std::size_t j = quad * kQuad; j < (quad + 1) * kQuad; ++j) {
          *out++ = column < n && j < k ? w[column * k + j] : std::int8_t{0};
        }
      }
    }
  }
}

inline void stage(const std::uint8_t* x, std::size_t count, void* staged) {
  if (count != 0) std::memcpy(staged, x, count);
}

}  // namespace
}  // namespace ctk::kernels
