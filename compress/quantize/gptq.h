// GPTQ: codes for a weight matrix that keep its outputs, with what may follow: coordinate descent and scale refits.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "compress/quantize/coordinate_descent.h"
#include "compress/quantize/grid_fit.h"
#include "core/result.h"

namespace ctk::quantization {

struct GptqOptions {
  GridForm form;
  GridFit fit = GridFit::squared_error;  // of the scales that everything starts from,
  bool weights_fit = true;               // weighted by the diagonal of H
  bool activation_order = true;          // columns with large H[k][k] first; groups stay those of neighbours
  double damping = 0.01;                 // of the mean of H's diagonal over live columns, added to all of it
  int sweeps = 4;                        // of coordinate descent after GPTQ; 0: plain GPTQ
  SweepParts sweep_parts;                // what moves in them besides codes
  bool judges_samples = true;            // errors on the samples themselves, even where others are held out
  bool falls_back = true;                // to rounding where that loses less; false: what is found is taken
  double target_share = 0.5;             // of the way to the best weights for the inputs as they come; needs `cross`
};

// All matrices row-major.
struct GptqInput {
  std::span<const float> weights;  // [rows, columns]
  std::size_t rows = 0, columns = 0;
  // Sum x x^T over the inputs the layer will see, [columns, columns]; empty or zero: no sample reached this layer.
  std::span<const float> hessian;
  std::size_t samples = 0;  // how many x
  // Sum x y^T of x and the inputs y the float network feeds the layer; empty: x is y.
  std::span<const float> cross;
  // The same two over samples that took no part above; empty: none are held out.
  std::span<const float> held_out_hessian, held_out_cross;
};

struct GptqReceipt {
  std::size_t samples = 0;
  std::size_t dead_columns = 0;  // whose H[k][k] is 0: their codes are plain rounding
  double damping = 0;            // share of the mean diagonal that was used,
  int damping_raises = 0;        // after so many failed factorizations
  // Squared output error over the samples (0 unless asked for), of rounding to fitted grids and of this method before
  // any falling back: with `cross` less a constant that is the same for both, and so possibly negative.
  double error_rounding = 0, error = 0;
  std::optional<double> held_out_error_rounding, held_out_error;
  std::size_t moved_codes = 0;  // by coordinate descent
  bool fell_back = false;       // to rounding: worse on held-out samples, or on the samples themselves without any
};

struct GptqOutcome {
  std::vector<std::int8_t> codes;  // [rows, columns]
  Grids grids;                     // [rows, groups]
  GptqReceipt receipt;
};

// Errors: input, when sizes do not fit, or weights or moments are not finite (says which).
Result<GptqOutcome> quantize_gptq(const GptqInput& input, const GptqOptions& options);

}  // namespace ctk::quantization
