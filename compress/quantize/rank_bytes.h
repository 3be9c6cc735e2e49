// Codes that were found, and values of networks, as bytes for other ranks: every bit of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compress/quantize/quantizers.h"

namespace ctk::quantization {

std::string encode(std::span<const WeightOutcome> outcomes);
// Errors: internal (no such bytes).
Result<std::vector<WeightOutcome>> decode(const std::string& bytes);

std::string encode_tensors(std::span<const Tensor> tensors);
Result<std::vector<Tensor>> decode_tensors(const std::string& bytes);  // errors: internal

}  // namespace ctk::quantization
