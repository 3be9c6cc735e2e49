// AWQ's clipping: minimises sum over weights of E[x^2] (w - Q(w))^2 over the scale of each group (its sign and zero
// point too), and rounds to nearest. In: W [channels, K], H = sum x x^T of what the coded network feeds the layer. Out:
// codes and scales. Cost: a fit and a rounding, rows * K^2 for the receipt. Source: Lin et al., AWQ, 2023, section 3.3.
// Differs: the diagonal of H weighs errors instead of outputs being compared for 20 clips; a layer keeps plain rounding
// where that loses less on held-out rows. The scaling of inputs is compress/transform's.
#include "compress/quantize/awq_weight.h"

#include "compress/quantize/coordinate_descent.h"
#include "compress/quantize/gptq_weight.h"
#include "compress/quantize/grid_fit.h"
#include "compress/quantize/layer_inputs.h"

namespace ctk::quantization {
namespace {

struct Rounded {
  Grids grids;
  std::vector<std::int8_t> codes;
  double error = 0;  // on the rows it is judged by
};

}  // namespace

Result<WeightOutcome> quantize_by_awq(const WeightRequest& request) {
  if (request.scheme.granularity == Granularity::per_tensor)
    return config_error("awq: expected a scale per channel or group, found " + to_string(request.scheme) +
                        ". Use w8a8_c, or method rtn");
  const graph::Layer layer = layer_of_weight(request);
  const std::vector<float> weights = weight_rows(layer, request.weight);
  const auto rows = static_cast<std::size_t>(layer.channels), columns = static_cast<std::size_t>(layer.reduction);
  LayerInputs& inputs = *request.inputs;
  const auto hessian = inputs.coded.finish();
  const auto judge = inputs.held_out.rows() > 0 ? inputs.held_out.finish() : hessian;
  const GridForm form = grid_form_of(request.scheme);
  const auto round = [&](std::span<const float> importance) {
    Rounded found;
    found.grids = fit_grids(weights, rows, columns, form, GridFit::squared_error, importance);
    found.codes = round_to_grids(weights, rows, columns, form, found.grids);
    std::vector<float> errors = dequantize(found.codes, rows, columns, form, found.grids);
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = weights[i] - errors[i];
    found.error = output_error(errors, rows, judge, columns);
    return found;
  };
  std::vector<float> importance(columns);
  for (std::size_t c = 0; c < columns; ++c) importance[c] = hessian[c * columns + c];
  const Rounded fitted = round(importance), plain = round({});
  const bool fell_back = plain.error <= fitted.error;
  InputReceipt receipt;
  receipt.rows = static_cast<std::int64_t>(inputs.coded.rows());
  receipt.held_out_rows = static_cast<std::int64_t>(inputs.held_out.rows());
  const double energy = output_error(weights, rows, judge, columns);
  receipt.error_rounding = energy > 0 ? plain.error / energy : 0;
  receipt.error = energy > 0 ? std::min(plain.error, fitted.error) / energy : 0;
  receipt.fell_back = fell_back;
  const Rounded& taken = fell_back ? plain : fitted;
  WeightOutcome outcome = outcome_of_grids(request, form, taken.grids, taken.codes);
  outcome.tensor.method = fell_back ? "rtn" : "awq";
  outcome.receipt = receipt;
  return outcome;
}

}  // namespace ctk::quantization
