#include "compress/quantize/quantizers.h"

#include <algorithm>
#include <array>

#include "compress/quantize/awq_weight.h"
#include "compress/quantize/gptq_weight.h"
#include "compress/quantize/rtn.h"

namespace ctk::quantization {
namespace {

constexpr std::array kQuantizers{
    Quantizer{"rtn", "round to nearest, scales fitted to squared error", false, quantize_rtn},
    Quantizer{"absmax", "round to nearest, scales of the largest weight: fast, and worse", false, quantize_absmax},
    Quantizer{"awq", "round to nearest, scales fitted to what outputs lose (scaling inputs is transform's)", true,
              quantize_by_awq},
    Quantizer{"gptq", "outputs kept on calibration data, layer after layer", true, quantize_by_gptq},
    Quantizer{"signround", "gptq's codes and scales, then tuned on the outputs of whole blocks (needs `make trainer`)",
              true, quantize_by_gptq},
};

}  // namespace

std::span<const Quantizer> quantizers() {
  return kQuantizers;
}

bool needs_inputs(std::string_view method) {
  return std::ranges::any_of(kQuantizers, [&](const Quantizer& row) { return row.name == method && row.needs_inputs; });
}

Result<const Quantizer*> find_quantizer(std::string_view name) {
  std::string known;
  for (const Quantizer& row : kQuantizers) {
    if (row.name == name) return &row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return config_error("unknown quantization method \"" + std::string(name) + "\". Known: " + known);
}

Status require_known_form(const QuantScheme& scheme) {
  const bool is_float = !scheme.is_integer_weight();
  const bool has_width = scheme.weight_bits == 8 || scheme.weight_bits == 4;
  // 8-bit activations meet symmetric weights of 4 or 8 bits, in groups of 4 only: those are the kernels there are.
  const bool has_kernel = has_width && !scheme.is_affine && scheme.activation_bits == 8 &&
                          (scheme.granularity != Granularity::per_group || scheme.weight_bits == 4);
  if (is_float || has_kernel || scheme.activation_bits == 16) return {};
  return config_error("scheme " + to_string(scheme) +
                      " is not available in this build. Use fp32, fp16, w8a8_c, w8a8_t, w4a8_c, w4a8_t, "
                      "w4a8_g32, or w2 to w8 with a16: w4a16_g32, w3a16_c, w5a16_g64_affine");
}

}  // namespace ctk::quantization
