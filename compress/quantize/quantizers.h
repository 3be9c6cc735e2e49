// Weight quantizers: the visible table, and what each is given.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/quant_tensor.h"
#include "core/result.h"
#include "graph/layer.h"

namespace ctk::quantization {

struct LayerInputs;

struct WeightRequest {
  Tensor weight;       // f32, the layer's own layout
  QuantScheme scheme;  // integer weight bits
  int channel_axis = 0;
  int group_count = 1;
  bool reduce_range = false;      // 8-bit codes within -64..63
  LayerInputs* inputs = nullptr;  // for methods that need them
  double damping = 0.01;
  // Least scale each channel may have so that its bias fits into int32 codes; empty: no bias or float activations.
  std::vector<float> least_scales;
};

// What a method that looks at inputs did, and what it was worth there.
struct InputReceipt {
  std::int64_t rows = 0, held_out_rows = 0;
  double damping = 0;  // share of the mean diagonal of the inputs' second moments
  int damping_raises = 0;
  double error_rounding = 0, error = 0;  // squared output error, relative to the outputs', on held-out rows if any
  bool fell_back = false;                // to rounding, which was better there
};

struct WeightOutcome {
  QuantTensor tensor;
  double squared_error = 0;      // sum over all weights, of the codes found
  double squared_error_rtn = 0;  // the same for plain absmax rounding: what fitting is worth
  int raised_scales = 0;         // channels whose scale the bias raised
  std::optional<InputReceipt> receipt;
};

struct Quantizer {
  std::string_view name;
  std::string_view what;
  bool needs_inputs;
  Result<WeightOutcome> (*run)(const WeightRequest& request);
};

std::span<const Quantizer> quantizers();
bool needs_inputs(std::string_view method);                      // false for an unknown one
Result<const Quantizer*> find_quantizer(std::string_view name);  // errors: config, lists the known

// Errors: config when the scheme's form is not one this build quantizes to (says which are).
Status require_known_form(const QuantScheme& scheme);

}  // namespace ctk::quantization
