#include "compress/transform/coded_error.h"

#include <algorithm>
#include <cmath>

#include "calibrate/calibration.h"
#include "calibrate/packed_matrix.h"
#include "compress/quantize/gptq_weight.h"
#include "compress/quantize/grid_fit.h"
#include "core/quant_tensor.h"

namespace ctk::transform {
namespace {

using quantization::GridFit;
using quantization::GridForm;

void round_in_range(std::span<float> rows, const InputSamples& samples, std::span<const float> factors,
                    const calibrate::ObserverOptions& observer) {
  float low = 0, high = 0;
  for (std::size_t f = 0; f < factors.size(); ++f) {
    low = std::min(low, samples.low[f] / factors[f]);
    high = std::max(high, samples.high[f] / factors[f]);
  }
  if (observer.method != "minmax") {
    auto collector = calibrate::RangeCollector::create(observer, {"rows"});
    bool is_seen = collector.has_value();
    for (int pass = 0; is_seen && pass < collector->passes(); ++pass) {
      is_seen = collector->begin_pass(pass).has_value() && collector->observe(0, rows, 0, 1).has_value();
    }
    if (is_seen) {
      if (const auto ranges = collector->finish()) low = (*ranges)[0].low, high = (*ranges)[0].high;
    }
  }
  const ActivationQuant quant = activation_quant_from_range(low, high);
  for (float& value : rows) value = dequantize(quantize(value, quant), quant);
}

// As kernels round activations beside weights in groups: symmetric, 127 for a group's largest magnitude.
void round_in_groups(std::span<float> rows, std::size_t k, std::size_t group) {
  for (std::size_t begin = 0; begin < rows.size(); begin += k) {
    for (std::size_t at = 0; at < k; at += group) {
      const auto part = rows.subspan(begin + at, std::min(group, k - at));
      float most = 0;
      for (const float value : part) most = std::max(most, std::abs(value));
      if (most == 0) continue;
      const float scale = most / 127.0f;
      for (float& value : part) value = std::nearbyint(value / scale) * scale;
    }
  }
}

}  // namespace

double coded_error(std::span<const CodedLayer> layers, const InputSamples& samples, std::size_t k,
                   std::span<const float> factors, const calibrate::ObserverOptions& observer) {
  const std::size_t window = k / factors.size();
  std::vector<float> scaled = samples.rows;
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] /= factors[i % k / window];
  double error = 0, energy = 0;
  for (const CodedLayer& layer : layers) {
    std::vector<float> rows = scaled;
    if (layer.scheme.is_integer_activation()) {
      if (layer.scheme.granularity == Granularity::per_group)
        round_in_groups(rows, k, static_cast<std::size_t>(layer.scheme.group_size));
      else
        round_in_range(rows, samples, factors, observer);
    }
    std::vector<float> weights = layer.weights;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= factors[i % k / window];
    const GridForm form = quantization::grid_form_of(layer.scheme);
    const GridFit fit = form.bits == 8 ? GridFit::extremes : GridFit::squared_error;
    const auto grids = quantization::fit_grids(weights, layer.channels, k, form, fit, {});
    const auto codes = quantization::round_to_grids(weights, layer.channels, k, form, grids);
    weights = quantization::dequantize(codes, layer.channels, k, form, grids);
    const std::vector<float> expected =
        calibrate::times_transposed(samples.rows, samples.rows.size() / k, layer.weights, layer.channels, k);
    const std::vector<float> found = calibrate::times_transposed(rows, rows.size() / k, weights, layer.channels, k);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double miss = static_cast<double>(found[i]) - static_cast<double>(expected[i]);
      error += miss * miss;
      energy += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
    }
  }
  return energy > 0 ? error / energy : error;
}

}  // namespace ctk::transform
