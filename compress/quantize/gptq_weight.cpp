#include "compress/quantize/gptq_weight.h"

#include <algorithm>

#include "compress/quantize/coordinate_descent.h"
#include "compress/quantize/gptq.h"
#include "compress/quantize/layer_inputs.h"

namespace ctk::quantization {
namespace {

// Of a weight with more rows than twice this, so many at least judge the method: rows are coded independently, and
// what is held out tells the methods apart by far fewer.
constexpr std::size_t kJudges = 256;

std::vector<float> every(std::size_t step, std::span<const float> rows, std::size_t columns) {
  std::vector<float> some;
  for (std::size_t r = 0; (r + step) * columns <= rows.size(); r += step) {
    const auto row = rows.subspan(r * columns, columns);
    some.insert(some.end(), row.begin(), row.end());
  }
  return some;
}

// Errors are shares of the squared outputs, tr(W H W^T).
InputReceipt receipt_of(const GptqReceipt& found, const LayerInputs& inputs, const GptqInput& input) {
  InputReceipt receipt;
  receipt.rows = static_cast<std::int64_t>(inputs.coded.rows());
  receipt.held_out_rows = static_cast<std::int64_t>(inputs.held_out.rows());
  receipt.damping = found.damping;
  receipt.damping_raises = found.damping_raises;
  const auto moment = input.held_out_hessian.empty() ? input.hessian : input.held_out_hessian;
  const double energy = output_error(input.weights, input.rows, moment, input.columns);
  const double share = energy > 0 ? 1 / energy : 0;
  receipt.error_rounding = found.held_out_error_rounding.value_or(found.error_rounding) * share;
  receipt.error = found.held_out_error.value_or(found.error) * share;
  receipt.fell_back = found.fell_back;
  return receipt;
}

}  // namespace

GridForm grid_form_of(const QuantScheme& scheme) {
  GridForm form;
  form.bits = scheme.weight_bits;
  form.is_affine = scheme.is_affine;
  form.group_size =
      scheme.granularity == Granularity::per_group ? static_cast<std::size_t>(scheme.group_size) : std::size_t{0};
  form.has_half_scales = !scheme.is_integer_activation();
  form.is_positive = scheme.is_integer_activation();
  return form;
}

graph::Layer layer_of_weight(const WeightRequest& request) {
  graph::Layer layer;
  layer.channel_axis = request.channel_axis;
  layer.channels = request.weight.shape()[static_cast<std::size_t>(request.channel_axis)];
  layer.reduction = static_cast<std::int64_t>(request.weight.size()) / std::max<std::int64_t>(1, layer.channels);
  return layer;
}

WeightOutcome outcome_of_grids(const WeightRequest& request, const GridForm& form, const Grids& grids,
                               std::span<const std::int8_t> found) {
  WeightOutcome outcome;
  QuantTensor& tensor = outcome.tensor;
  tensor.scheme = request.scheme;
  tensor.channel_axis = request.channel_axis;
  tensor.group_count = request.group_count;
  tensor.scales = grids.scales;
  // Ours are signed codes: the middle of an affine range is their 0.
  const int middle = request.scheme.is_affine ? 1 << (request.scheme.weight_bits - 1) : 0;
  std::vector<std::int8_t> codes(found.size());
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<std::int8_t>(form.code_value(found[i]) - middle);
  for (std::uint8_t zero : grids.zeros) tensor.zeros.push_back(static_cast<std::int8_t>(zero - middle));
  tensor.codes = pack_codes(request.weight.shape(), from_rows<std::int8_t>(layer_of_weight(request), codes),
                            request.scheme.weight_bits);
  const Tensor back = dequantize(tensor);
  for (std::size_t i = 0; i < back.size(); ++i) {
    const double miss =
        static_cast<double>(back.values<float>()[i]) - static_cast<double>(request.weight.values<float>()[i]);
    outcome.squared_error += miss * miss;
  }
  return outcome;
}

Result<WeightOutcome> quantize_by_gptq(const WeightRequest& request) {
  if (request.scheme.granularity == Granularity::per_tensor)
    return config_error("gptq: expected a scale per channel or group, found " + to_string(request.scheme) +
                        ". Use w8a8_c, or method rtn");
  const graph::Layer layer = layer_of_weight(request);
  const std::vector<float> rows = weight_rows(layer, request.weight);
  LayerInputs& inputs = *request.inputs;
  GptqInput input;
  input.weights = rows;
  input.rows = static_cast<std::size_t>(layer.channels);
  input.columns = static_cast<std::size_t>(layer.reduction);
  input.hessian = inputs.coded.finish();
  input.samples = inputs.coded.rows();
  input.cross = inputs.cross.finish();
  if (inputs.held_out.rows() > 0) {
    input.held_out_hessian = inputs.held_out.finish();
    input.held_out_cross = inputs.held_out_cross.finish();
  }
  GptqOptions options;
  options.form = grid_form_of(request.scheme);
  options.damping = request.damping;
  options.judges_samples = false;
  options.falls_back = inputs.judged == nullptr;
  if (const std::size_t step = input.rows / kJudges; inputs.judges_only && step > 1) {
    const std::vector<float> some = every(step, rows, input.columns);
    GptqInput part = input;
    part.weights = some;
    part.rows = some.size() / input.columns;
    CTK_TRY(const GptqOutcome trial, quantize_gptq(part, options));
    if (!trial.receipt.fell_back) {
      WeightOutcome outcome;
      outcome.tensor.scheme = request.scheme;
      outcome.tensor.codes = pack_codes({0}, {}, request.scheme.weight_bits);
      outcome.tensor.method = "gptq";
      outcome.receipt = receipt_of(trial.receipt, inputs, part);
      return outcome;
    }
  }
  CTK_TRY(GptqOutcome found, quantize_gptq(input, options));
  InputReceipt receipt;
  if (inputs.judged != nullptr) {
    receipt = *inputs.judged;
  } else {
    receipt = receipt_of(found.receipt, inputs, input);
  }

  WeightOutcome outcome = outcome_of_grids(request, options.form, found.grids, found.codes);
  outcome.tensor.method = found.receipt.fell_back ? "rtn" : "gptq";
  outcome.receipt = receipt;
  return outcome;
}

}  // namespace ctk::quantization
