// Applies an assignment of schemes to a graph: codes for weights, notes for activations, bias correction.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "compress/quantize/quantizers.h"
#include "core/quant_scheme.h"
#include "graph/graph.h"
#include "graph/layer.h"

namespace ctk::quantization {

// Scheme per layer, by node address. Layers that are absent stay float.
using SchemeMap = std::map<std::string, QuantScheme>;

// Codes found beforehand, by node address.
using GivenCodes = std::map<std::string, WeightOutcome>;

struct ApplyOptions {
  std::string method = "rtn";
  bool bias_correction = false;
  bool reduce_range = false;  // 8-bit codes within -64..63: two products by uint8 then fit into 16 bits
  // Mean of each input channel per layer input value (by value name), from calibration; needed for bias correction.
  const std::map<std::string, std::vector<double>>* input_means = nullptr;
  bool codes_weights = true;  // false: zeros in the place of codes, scales and zero points, whose bytes are wanted only
  const GivenCodes* given = nullptr;  // of methods that look at inputs; layers without an entry are rounded
  // One sample of each graph input; empty: as the model declares them, free dimensions 1.
  std::vector<Shape> input_shapes;
};

struct LayerOutcome {
  std::string address;
  QuantScheme scheme;
  std::string method;
  double error_rtn = 0;     // relative squared weight error of plain absmax rounding
  double error_method = 0;  // of the codes used
  int raised_scales = 0;    // channels whose scale was raised so that the bias fits (FAULTS "bias overflow")
  bool bias_corrected = false;
  std::optional<InputReceipt> receipt;
};

struct ApplyWarning {
  std::string code, text;  // "weight_split", "weights_vanish", "quantize"
};

struct ApplyOutcome {
  std::vector<LayerOutcome> layers;  // integer and fp16 layers, in graph order
  std::vector<ApplyWarning> warnings;
};

// Gemm with alpha or beta other than 1 gets them multiplied into weight and bias, so that one rule serves all layers.
// Part of preparing a float graph; values agree to one rounding. Weights shared with other nodes are copied first.
Status fold_gemm_factors(graph::Graph& graph);

// `graph` is float (after passes); ranges by value name must cover values_to_observe().
// Layers that share a weight and get the same scheme share its codes. Any other reader, and a graph output, keeps the
// float original: the weight is split into two constants, with a warning that names it.
// Errors: config (unknown layer address, scheme not available), input (a weight that is coded already, or too large for
// fp16).
Result<ApplyOutcome> apply_schemes(graph::Graph& graph, const SchemeMap& schemes,
                                   const std::map<std::string, calibrate::Range>& ranges, const ApplyOptions& options);

// Why a layer cannot take a scheme; empty when it can.
std::string infeasible_reason(const graph::Graph& graph, const graph::Layer& layer, const QuantScheme& scheme);

}  // namespace ctk::quantization
