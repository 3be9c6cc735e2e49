// Finds the grid of each group of a weight matrix: from its extremes alone, or fitted to squared error.
#pragma once

#include <span>

#include "compress/quantize/grid.h"

namespace ctk::quantization {

enum class GridFit {
  extremes,  // symmetric: largest magnitude over highest_code(); affine: least and largest value, widened to hold 0
  squared_error,  // scale (its sign too), zero point and clipping that minimise sum h (w - real)^2
};

// One group. values: finite. importance: h >= 0 for each value, or empty for 1; all zero counts as 1. A group of zeros
// gets scale 1. Never worse than `extremes` by the same measure.
Grid grid_of_extremes(std::span<const float> values, const GridForm& form);
Grid fit_grid(std::span<const float> values, std::span<const float> importance, const GridForm& form);

// Every group of [rows, columns]; importance [columns] (the diagonal of H, say) or empty.
Grids fit_grids(std::span<const float> weights, std::size_t rows, std::size_t columns, const GridForm& form,
                GridFit fit, std::span<const float> importance);

}  // namespace ctk::quantization
