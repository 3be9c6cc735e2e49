// AWQ: minimises tr((W - Q(W s) / s) H (W - Q(W s) / s)^T) over one exponent a, s = x^a, or x^a / w^(1 - a), per
// feature. In:  W [rows, columns] of each layer, H [columns, columns]. Out: s [columns], the exponent, the error with
// and without. Cost: 2 * steps times a fit, a rounding and rows * columns^2 multiply-adds. Source: Lin et al., AWQ,
// 2023. Differs: x is the root mean square of a feature (from the diagonal of H) instead of its mean magnitude; errors
// are exact over all samples, by H; scales of groups are fitted, weighted by H, for each trial. SmoothQuant: Xiao et
// al., 2022, equation 4.
#include "compress/quantize/input_scaling.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "compress/quantize/coordinate_descent.h"
#include "core/parallel.h"

namespace ctk::quantization {
namespace {

Status check_finite(std::span<const float> values, std::size_t expected, const std::string& what,
                    bool may_be_negative) {
  if (values.size() != expected) {
    return input_error(what + ": expected \"" + std::to_string(expected) + "\" values, found \"" +
                       std::to_string(values.size()) + "\". Gather them for the same features.");
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && (may_be_negative || values[i] >= 0)) continue;
    return input_error(what + ": expected finite values" + (may_be_negative ? "" : " of 0 or more") + ", found \"" +
                       std::to_string(values[i]) + "\" at \"" + std::to_string(i) +
                       "\". Look at the layer that made it.");
  }
  return {};
}

// Factors from their logarithms, centred so that the largest and the smallest multiply to 1; features that are off
// keep 1.
std::vector<float> centred(const std::vector<double>& logs, const std::vector<bool>& is_on) {
  double low = INFINITY, high = -INFINITY;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    if (!is_on[i]) continue;
    low = std::min(low, logs[i]);
    high = std::max(high, logs[i]);
  }
  std::vector<float> factors(logs.size(), 1.0f);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    // Within e^40 and its inverse: products with weights stay far from the ends of float32.
    if (is_on[i]) factors[i] = static_cast<float>(std::exp(std::clamp(logs[i] - 0.5 * (low + high), -40.0, 40.0)));
  }
  return factors;
}

double scaled_error(std::span<const std::span<const float>> layers, std::size_t columns, std::span<const float> hessian,
                    const AwqOptions& options, const std::vector<float>& factors) {
  std::vector<float> importance(options.is_weighted ? columns : 0);
  for (std::size_t c = 0; c < importance.size(); ++c)
    importance[c] = hessian[c * columns + c] / (factors[c] * factors[c]);
  double error = 0;
  for (const std::span<const float> weights : layers) {
    const std::size_t rows = weights.size() / columns;
    std::vector<float> scaled(weights.begin(), weights.end());
    for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] *= factors[i % columns];
    const Grids grids = fit_grids(scaled, rows, columns, options.form, options.fit, importance);
    const auto codes = round_to_grids(scaled, rows, columns, options.form, grids);
    std::vector<float> errors = dequantize(codes, rows, columns, options.form, grids);
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = weights[i] - errors[i] / factors[i % columns];
    error += output_error(errors, rows, hessian, columns);
  }
  return error;
}

}  // namespace

Result<std::vector<float>> smoothquant_factors(std::span<const float> input_magnitudes,
                                               std::span<const float> weight_magnitudes, double strength) {
  CTK_CHECK(check_finite(input_magnitudes, input_magnitudes.size(), "magnitudes of inputs", false));
  CTK_CHECK(check_finite(weight_magnitudes, input_magnitudes.size(), "magnitudes of weights", false));
  std::vector<float> factors(input_magnitudes.size(), 1.0f);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (input_magnitudes[i] == 0 || weight_magnitudes[i] == 0) continue;
    const double log = strength * std::log(static_cast<double>(input_magnitudes[i])) -
                       (1 - strength) * std::log(static_cast<double>(weight_magnitudes[i]));
    factors[i] = static_cast<float>(std::exp(std::clamp(log, -40.0, 40.0)));
  }
  return factors;
}

Result<AwqOutcome> search_awq_factors(std::span<const std::span<const float>> layers, std::size_t columns,
                                      std::span<const float> hessian, const AwqOptions& options) {
  CTK_CHECK(check_finite(hessian, columns * columns, "second moment of the inputs", true));
  std::vector<double> weight_log(columns, 0.0), input_log(columns, 0.0);
  std::vector<bool> is_on(columns, true);
  for (const std::span<const float> weights : layers) {
    CTK_CHECK(check_finite(weights, columns == 0 ? 0 : weights.size() / columns * columns, "weights", true));
  }
  std::vector<double> sum(columns, 0.0), mean_square(columns, 0.0);
  std::vector<std::size_t> count(columns, 0), members(columns, 0);
  const auto class_of = [&](std::size_t c) { return options.class_of.empty() ? c : options.class_of[c]; };
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t k = class_of(c);
    mean_square[k] += static_cast<double>(hessian[c * columns + c]);
    ++members[k];
    for (const std::span<const float> weights : layers) {
      for (std::size_t i = c; i < weights.size(); i += columns, ++count[k])
        sum[k] += std::abs(static_cast<double>(weights[i]));
    }
  }
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t k = class_of(c);
    is_on[c] = sum[k] > 0 && mean_square[k] > 0;
    if (!is_on[c]) continue;
    weight_log[c] = std::log(sum[k] / static_cast<double>(count[k]));
    input_log[c] = 0.5 * std::log(mean_square[k] / static_cast<double>(members[k]));
  }
  AwqOutcome best;
  best.factors.assign(columns, 1.0f);
  best.error = best.error_unscaled = scaled_error(layers, columns, hessian, options, best.factors);
  for (bool is_divided : {false, true}) {
    for (int step = is_divided ? 0 : 1; step <= options.steps; ++step) {
      const double exponent = static_cast<double>(step) / options.steps;
      if (is_divided && step == options.steps) continue;  // the same as without
      std::vector<double> logs(columns);
      for (std::size_t c = 0; c < columns; ++c)
        logs[c] = exponent * input_log[c] - (is_divided ? (1 - exponent) * weight_log[c] : 0.0);
      std::vector<float> factors = centred(logs, is_on);
      const double error = scaled_error(layers, columns, hessian, options, factors);
      if (!(error < best.error)) continue;
      best.error = error;
      best.exponent = exponent;
      best.is_divided = is_divided;
      best.factors = std::move(factors);
    }
  }
  return best;
}

}  // namespace ctk::quantization
