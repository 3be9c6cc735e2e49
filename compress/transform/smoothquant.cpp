// SmoothQuant: minimises the squared error of a group's outputs, inputs and weights both rounded, over one exponent a:
// inputs are divided by s = max|x|^a / max|w|^(1 - a) a feature, the columns of weights multiplied by it.
// In: a network, the schemes its layers will have, samples. Out: the network with factors folded in, the error with and
// without. Cost: one pass over the samples, then some ten products of 512 rows a layer. Source: Xiao et al.,
// SmoothQuant, 2022, equation 4. Differs: a is searched for each group of layers that read one value, by the error on
// real rows; a group keeps its inputs where no exponent is better.
#include <cmath>

#include "compress/quantize/input_scaling.h"
#include "compress/transform/scaling.h"

namespace ctk::transform {
namespace {

constexpr double kExponents[] = {0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};

// Largest magnitudes of each feature, over its class.
std::vector<float> over_classes(std::vector<float> most, std::span<const std::uint32_t> class_of) {
  std::vector<float> of_class(most.size(), 0.0f);
  for (std::size_t f = 0; f < most.size(); ++f) of_class[class_of[f]] = std::max(of_class[class_of[f]], most[f]);
  for (std::size_t f = 0; f < most.size(); ++f) most[f] = of_class[class_of[f]];
  return most;
}

// Factors whose geometric mean is 1: the size of inputs and weights stays what it was.
void centre(std::vector<float>& factors) {
  double sum = 0;
  for (const float factor : factors) sum += std::log(static_cast<double>(factor));
  const double mean = std::exp(sum / static_cast<double>(std::max<std::size_t>(1, factors.size())));
  for (float& factor : factors) factor = static_cast<float>(static_cast<double>(factor) / mean);
}

}  // namespace

Result<Transformed> run_smoothquant(const Request& request) {
  ScalingOptions options;
  options.method = "smoothquant";
  options.takes = [](const QuantScheme& scheme) { return scheme.is_integer_activation(); };
  options.why_not = "its activations stay floats";
  return scale_groups(
      request, options,
      [&](const InputGroup& group, std::span<const CodedLayer> layers, const InputSamples& samples,
          std::span<const std::uint32_t> class_of) -> Result<Factors> {
        const auto k = static_cast<std::size_t>(group.sampled().reduction);
        const std::size_t window = k / group.features;
        std::vector<float> inputs(group.features), weights(group.features, 0.0f);
        for (std::size_t f = 0; f < inputs.size(); ++f) inputs[f] = std::max(samples.high[f], -samples.low[f]);
        for (const CodedLayer& layer : layers) {
          for (std::size_t i = 0; i < layer.weights.size(); ++i) {
            float& most = weights[i % k / window];
            most = std::max(most, std::abs(layer.weights[i]));
          }
        }
        inputs = over_classes(std::move(inputs), class_of);
        weights = over_classes(std::move(weights), class_of);
        const auto error_of = [&](std::span<const float> factors) {
          return coded_error(layers, samples, k, factors, request.observer);
        };
        Factors best;
        best.error_before = best.error_after = error_of(std::vector<float>(group.features, 1.0f));
        const std::span<const double> exponents =
            request.strength ? std::span<const double>(&*request.strength, 1) : std::span<const double>(kExponents);
        for (const double exponent : exponents) {
          CTK_TRY(std::vector<float> factors, quantization::smoothquant_factors(inputs, weights, exponent));
          centre(factors);
          const double error = error_of(factors);
          if (!request.strength && !(error < best.error_after)) continue;
          best.values = std::move(factors);
          best.strength = exponent;
          best.error_after = error;
        }
        return best;
      });
}

}  // namespace ctk::transform
