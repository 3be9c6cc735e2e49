// Sensitivity curves: KL of the outputs to the float network's when one group alone is cut to a width.
#pragma once

#include <functional>
#include <string>

#include "compress/prune/repair.h"
#include "compress/prune/widths.h"

namespace ctk::pruning {

struct CurveOptions {
  std::string folder;                 // for outputs too large for memory
  const InputSums* repair = nullptr;  // readers of the group are refitted by these before measuring; null: not
  double ridge = 1e-3;
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// Widths of every group that may be cut, in steps of about an eighth of its units, on `split`; widths between two that
// were measured get a loss in proportion. Losses never fall as widths do: a point takes the greatest of those before.
// Samples are as many as 2e10 multiply-adds of a run allow, at least 16. Errors: those of running.
Result<Curves> measure_curves(const WidthTask& task, const data::Split& split, const CurveOptions& options);

}  // namespace ctk::pruning
