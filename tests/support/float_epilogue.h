// Epilogues of float products for tests: their arrays, and the last step worked out by itself.
#pragma once

#include <limits>
#include <vector>

#include "kernels/epilogue.h"
#include "tests/support/hostile_memory.h"

namespace ctk::test {

enum class Residual { none, apart, in_place };

// Output of `pixels` rows of `channels` values, `stride` apart, with what its epilogue reads.
class FloatOutput {
 public:
  FloatOutput(Random& random, std::size_t pixels, std::size_t channels, std::size_t stride, bool has_bias,
              Residual residual, bool is_clamped)
      : pixels_(pixels),
        channels_(channels),
        stride_(stride),
        kind_(residual),
        residual_values_(random_floats(random, pixels == 0 ? 0 : (pixels - 1) * stride + channels)),
        bias_(random_floats(random, channels)),
        residual_(residual_values_),
        c_(residual_values_) {
    epilogue.bias = has_bias ? bias_.data() : nullptr;
    if (residual != Residual::none) {
      epilogue.residual = residual == Residual::apart ? residual_.data() : c_.data();
      epilogue.residual_stride = stride;
    }
    epilogue.low = is_clamped ? -0.25f : -std::numeric_limits<float>::infinity();
    epilogue.high = is_clamped ? 0.5f : std::numeric_limits<float>::infinity();
  }

  float* data() { return c_.data(); }
  std::vector<float> values() const { return c_.values(); }
  void reset() { std::copy(residual_values_.begin(), residual_values_.end(), c_.data()); }
  float bias(std::size_t channel) const { return epilogue.bias != nullptr ? epilogue.bias[channel] : 0.0f; }

  // What the output must hold when sum(pixel, channel) gives the sums; elements between the rows stay as they are.
  template <class Sum>
  std::vector<float> expected(Sum&& sum) const {
    std::vector<float> out = residual_values_;
    for (std::size_t p = 0; p < pixels_; ++p) {
      for (std::size_t c = 0; c < channels_; ++c) {
        float value = sum(p, c);
        if (kind_ != Residual::none) value = value + residual_values_[p * stride_ + c];
        if (value < epilogue.low) value = epilogue.low;
        if (value > epilogue.high) value = epilogue.high;
        out[p * stride_ + c] = value;
      }
    }
    return out;
  }

  kernels::EpilogueFloat epilogue;

 private:
  std::size_t pixels_, channels_, stride_;
  Residual kind_;
  std::vector<float> residual_values_;
  FencedArray<float> bias_, residual_, c_;
};

}  // namespace ctk::test
