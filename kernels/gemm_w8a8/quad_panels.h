// What rows that multiply four k at a time share: panels of quads, and activations staged as they are. For ISA sources:
// everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/gemm_w8a8/panels.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kQuad = 4;

inline void stage(const std::uint8_t* x, std::size_t count, void* staged) {
  if (count != 0) std::memcpy(staged, x, count);
}

}  // namespace
}  // namespace ctk::kernels
