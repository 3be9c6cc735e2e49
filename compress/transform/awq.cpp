// AWQ as a transform: minimises the squared error of a group's outputs, weights alone rounded, over the exponents of
// compress/quantize/input_scaling; inputs are divided by the factors found, the columns of weights multiplied.
// In: a network, the schemes its layers will have, samples. Out: the network with factors folded in, the error with and
// without. Cost: one pass over the samples with a second moment a group, then 40 roundings and products a layer.
// Source: Lin et al., AWQ, 2023. Differs: as input_scaling says; the clip search is the fit of scales that follows.
#include "compress/quantize/coordinate_descent.h"
#include "compress/quantize/gptq_weight.h"
#include "compress/quantize/input_scaling.h"
#include "compress/transform/scaling.h"

namespace ctk::transform {

Result<Transformed> run_awq(const Request& request) {
  ScalingOptions options;
  options.method = "awq";
  options.samples = {0, true};
  options.takes = [](const QuantScheme& scheme) { return scheme.is_integer_weight(); };
  options.why_not = "its weights are not coded";
  return scale_groups(request, options,
                      [&](const InputGroup& group, std::span<const CodedLayer> layers, InputSamples& samples,
                          std::span<const std::uint32_t> class_of) -> Result<Factors> {
                        const auto k = static_cast<std::size_t>(group.sampled().reduction);
                        const std::size_t window = k / group.features;
                        std::vector<std::uint32_t> classes(k);
                        for (std::size_t c = 0; c < k; ++c)
                          classes[c] = static_cast<std::uint32_t>(class_of[c / window] * window);
                        quantization::AwqOptions search;
                        search.form = quantization::grid_form_of(layers[0].scheme);
                        search.is_weighted = request.fits_by_inputs;
                        search.class_of = classes;
                        std::vector<std::span<const float>> weights;
                        for (const CodedLayer& layer : layers) weights.emplace_back(layer.weights);
                        const auto hessian = samples.moment->finish();
                        CTK_TRY(const auto found, quantization::search_awq_factors(weights, k, hessian, search));
                        double energy = 0;
                        for (const CodedLayer& layer : layers)
                          energy += quantization::output_error(layer.weights, layer.channels, hessian, k);
                        const double share = energy > 0 ? 1 / energy : 1;
                        Factors factors{{}, found.exponent, found.error_unscaled * share, found.error * share};
                        if (!(found.error < found.error_unscaled)) return factors;
                        factors.values.resize(group.features);
                        for (std::size_t f = 0; f < group.features; ++f) factors.values[f] = found.factors[f * window];
                        return factors;
                      });
}

}  // namespace ctk::transform
