// Gates: whether a metric has become worse than a limit allows.
//
// drop = baseline - final where higher is better, final - baseline where lower is; a negative drop is a gain. A limit
// in points is compared with the drop in points (0.01 of a share, 1 of any other metric's unit), a limit in per cent
// with drop / |baseline|. Figures that are not finite, and per cent of a baseline of 0, are errors and never a pass.
#pragma once

#include <string>
#include <string_view>

#include "compress/units.h"
#include "core/result.h"

namespace ctk::pipeline {

struct GateVerdict {
  bool is_met = false;
  double drop = 0;   // in the unit of the limit: points, or a factor
  double limit = 0;  // same unit
  std::string text;  // "top1 0.8733 -> 0.8705: drop 0.28 pt, limit 0.5 pt"
};

// Errors: config (unknown metric, per cent of a baseline of 0), input (figures that are not finite).
Result<GateVerdict> hold_gate(const MetricDrop& limit, std::string_view metric, double baseline, double final);

}  // namespace ctk::pipeline
