// Weights of a float product in panels of 16 columns, [ceil(n / 16)][k][16], the last one filled up with zeros.
// Internal linkage. `Form` says how weights are held: its `Stored` and narrow() of one float.
#pragma once

#include <cstddef>

namespace ctk::kernels {
namespace {

constexpr std::size_t kPanel = 16;

template <class Form>
std::size_t packed_bytes(std::size_t n, std::size_t k) {
  return (n + kPanel - 1) / kPanel * kPanel * k * sizeof(typename Form::Stored);
}

template <class Form>
void pack(const float* w, std::size_t n, std::size_t k, void* packed) {
  auto* out = static_cast<typename Form::Stored*>(packed);
  for (std::size_t panel = 0; panel < n; panel += kPanel) {
    const std::size_t columns = n - panel < kPanel ? n - panel : kPanel;
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t c = 0; c < kPanel; ++c) *out++ = Form::narrow(c < columns ? w[(panel + c) * k + i] : 0.0f);
    }
  }
}

inline std::size_t scratch_bytes(std::size_t) {
  return 0;
}

}  // namespace
}  // namespace ctk::kernels
