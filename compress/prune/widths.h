// How many units each group keeps, for an aim in multiply-adds or in channels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compress/prune/importance.h"
#include "compress/prune/macs.h"

namespace ctk::pruning {

struct WidthTask {
  const graph::Coupling& coupling;
  const MacsCount& macs;
  std::vector<std::vector<std::size_t>> ranking;  // [groups] -> units, first to go first
  std::vector<bool> is_wanted;                    // [groups]: may be cut
  double max_ratio = 0.9;                         // of a group's units may go
  std::int64_t round_to = 0;                      // kept units are a multiple of it, or all; 0: by size of the group
  // Of these, one: share of the multiply-adds that stays, at most; share of the units of wanted groups that goes, at
  // least.
  std::optional<double> macs_kept, ratio;
};

using Widths = std::vector<std::size_t>;  // [groups]: units kept

// Kept counts a group may have, all of them first: multiples as the task says, never none, never below what max_ratio
// leaves. With round_to 0: of 8, which is what a row of the float kernels computes at once, from 16 units on; else any.
Widths allowed_widths(const WidthTask& task, std::size_t group);
// The least important units beyond each width.
graph::Coupling::Units removed_by(const WidthTask& task, const Widths& widths);
Widths whole_widths(const WidthTask& task);

// Errors: config (the aim is out of reach of max_ratio and the groups that may be cut: says how far they reach).
Status require_reachable(const WidthTask& task);

// The same ratio in every group, as small as the aim allows.
Result<Widths> uniform_widths(const WidthTask& task);
// The least important units of all groups, by their score over the group's mean.
Result<Widths> global_widths(const WidthTask& task, const Scores& scores);

// What a group's width costs in outputs: measured, one group cut alone.
struct CurvePoint {
  std::size_t width = 0;
  double loss = 0;  // nats
  double us = 0;    // of the network so cut (width_times.h); 0: not timed
};
using Curves = std::vector<std::vector<CurvePoint>>;  // [groups], widest first; empty for groups that stay
// Whether stages.prune.ratios must have them, and samples to measure them on.
bool needs_curves(std::string_view ratios);
// At most `most` of a curve's points, evenly, with the first and the last; both numbers at least 2.
std::vector<CurvePoint> spread(const std::vector<CurvePoint>& curve, std::size_t most);
// Least summed loss by the search programme; sums of multiply-adds are corrected until the cut network keeps the aim.
Result<Widths> widths_from_curves(const WidthTask& task, const Curves& curves);

}  // namespace ctk::pruning
