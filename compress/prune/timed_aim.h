// A latency as the aim of cutting: networks are cut, timed beside the whole one, and cut again.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "compress/prune/widths.h"
#include "compress/session.h"

namespace ctk::pruning {

// Widths for a share of the multiply-adds, or of the time as curves tell it. Errors: budget_infeasible (out of reach).
using Widen = std::function<Result<Widths>(double share)>;

// The greatest such share whose network is timed within `share` of what the model takes, by halving. What was timed is
// added to `timed` ({"macs", "latency"}: shares). Errors: config (says how far cuts reach), those of running.
Result<Widths> widths_for_time(const pipeline::Session& session, const WidthTask& task, double share,
                               const Widen& widen, nlohmann::json& timed);

// A limit as a share of what the network takes now. Errors: those of running.
Result<double> share_of_time(const pipeline::Session& session, const pipeline::Limit& limit);

}  // namespace ctk::pruning
