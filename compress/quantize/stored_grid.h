// Weights that were rounded to few bits before they came to us, as floats: noticed, and kept without loss where a
// scheme can hold their grid.
#pragma once

#include <optional>
#include <span>

#include "compress/quantize/quantizers.h"

namespace ctk::quantization {

struct StoredGrid {
  int bits = 0;                // levels of any group are at most 2^bits
  std::size_t group_size = 0;  // neighbours along a row that share a step; 0: the whole row
  bool has_zero = false;  // 0 is a level of every group, so that integer zero points reach it; else minima are floats
};

// rows [n, k]. The largest of whole rows and groups of 128, 64, 32, 16 whose weights are all equally spaced, to the
// rounding of the type that holds them (f32, or numbers of bf16 or fp16). Weights of fewer than 256, and groups that
// are mostly constant, are no grid. Random weights are refused within their first groups.
std::optional<StoredGrid> find_stored_grid(std::span<const float> rows, std::size_t n, std::size_t k);

// The codes of such weights under the request's scheme (activations float), if they stand for the very same numbers, to
// the rounding of the type that held them; method "kept".
std::optional<WeightOutcome> keep_stored_grid(const WeightRequest& request);

// By the method, unless the codes can be kept: with nothing to lose, there is nothing to fit.
Result<WeightOutcome> keep_or_code(const Quantizer& quantizer, const WeightRequest& request);

}  // namespace ctk::quantization
