#include "graph/hf/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ctk::graph::hf {
namespace {

constexpr double kTurn = 2.0 * std::numbers::pi;

float llama3_frequency(const RopeConfig& config, float frequency) {
  const auto context = static_cast<double>(config.original_max_positions);
  const double wavelength = kTurn / frequency;
  if (wavelength < context / config.high_freq_factor) return frequency;
  const auto slowed = static_cast<float>(frequency / config.factor);
  if (wavelength > context / config.low_freq_factor) return slowed;
  const double smooth =
      (context / wavelength - config.low_freq_factor) / (config.high_freq_factor - config.low_freq_factor);
  return static_cast<float>((1.0 - smooth) * slowed + smooth * frequency);
}

// The pair that turns `rotations` times over the trained context, as a real number.
double correction_dim(const RopeConfig& config, std::int64_t size, double rotations) {
  return static_cast<double>(size) *
         std::log(static_cast<double>(config.original_max_positions) / (rotations * kTurn)) /
         (2.0 * std::log(config.theta));
}

void scale_yarn(const RopeConfig& config, std::int64_t size, std::vector<float>& frequencies) {
  double low = correction_dim(config, size, config.beta_fast), high = correction_dim(config, size, config.beta_slow);
  if (config.truncates) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(size - 1));
  if (low == high) high += 0.001;  // as the source: a step instead of a division by zero
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double kept = frequencies[i], slowed = kept / config.factor;
    frequencies[i] = static_cast<float>(slowed * ramp + kept * (1.0 - ramp));
  }
}

double mscale_of(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

}  // namespace

std::vector<float> rope_frequencies(const RopeConfig& config, std::int64_t size) {
  std::vector<float> frequencies(static_cast<std::size_t>(size / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(size);
    frequencies[i] = 1.0f / static_cast<float>(std::pow(config.theta, static_cast<double>(exponent)));
    if (i < config.frequency_factors.size()) frequencies[i] /= config.frequency_factors[i];
  }
  switch (config.type) {
    case RopeType::standard:
      break;
    case RopeType::linear:
      for (float& f : frequencies) f = static_cast<float>(f / config.factor);
      break;
    case RopeType::llama3:
      for (float& f : frequencies) f = llama3_frequency(config, f);
      break;
    case RopeType::yarn:
      scale_yarn(config, size, frequencies);
      break;
  }
  return frequencies;
}

double rope_attention_factor(const RopeConfig& config) {
  if (config.type != RopeType::yarn) return 1.0;
  if (config.attention_factor) return *config.attention_factor;
  if (config.mscale != 0.0 && config.mscale_all_dim != 0.0) {
    return mscale_of(config.factor, config.mscale) / mscale_of(config.factor, config.mscale_all_dim);
  }
  return mscale_of(config.factor, 1.0);
}

Result<RopeTables> rope_tables(const RopeConfig& config, std::int64_t size, std::int64_t positions) {
  const std::vector<float> frequencies = rope_frequencies(config, size);
  const double factor = rope_attention_factor(config);
  RopeTables tables;
  CTK_TRY(tables.cosines, Tensor::zeros(DType::f32, {positions, size / 2}));
  CTK_TRY(tables.sines, Tensor::zeros(DType::f32, {positions, size / 2}));
  float* cosine = tables.cosines.mutable_values<float>().data();
  float* sine = tables.sines.mutable_values<float>().data();
  for (std::int64_t p = 0; p < positions; ++p) {
    for (const float frequency : frequencies) {
      const double angle = static_cast<float>(p) * frequency;
      *cosine++ = static_cast<float>(std::cos(angle) * factor);
      *sine++ = static_cast<float>(std::sin(angle) * factor);
    }
  }
  return tables;
}

}  // namespace ctk::graph::hf
