#include "compress/prune/timed_aim.h"

#include <algorithm>
#include <cstdio>

#include "compress/interrupt.h"
#include "compress/network_stage.h"

namespace ctk::pruning {
namespace {

constexpr int kTimedCuts = 7;  // networks that are timed on the way to a latency

}  // namespace

Result<Widths> widths_for_time(const pipeline::Session& session, const WidthTask& task, double share,
                               const Widen& widen, nlohmann::json& timed) {
  double low = 0, high = 1;
  std::optional<Widths> found;
  double least = 1;  // share of the time that was reached
  for (int i = 0; i < kTimedCuts; ++i) {
    CTK_CHECK(check_interrupt());
    const double asked = (low + high) / 2;
    auto widened = widen(asked);
    if (!widened && widened.error().code == ErrorCode::budget_infeasible) {
      low = asked;
      continue;
    }
    CTK_TRY(const Widths widths, std::move(widened));
    const graph::Coupling::Units removed = removed_by(task, widths);
    CTK_TRY(const graph::Graph cut, task.coupling.cut(removed));
    const graph::Graph* const both[] = {&session.model.graph, &cut};
    CTK_TRY(const std::vector<double> times, pipeline::median_times_us(session, both));
    const double macs = static_cast<double>(task.macs.of(removed)) / static_cast<double>(task.macs.whole());
    timed.push_back({{"macs", macs}, {"latency", times[1] / times[0]}});
    least = std::min(least, times[1] / times[0]);
    const bool is_met = times[1] <= share * times[0];
    if (is_met) found = widths;
    (is_met ? low : high) = asked;
  }
  if (found) return *found;
  char text[120];
  std::snprintf(text, sizeof text, "%.0f %% of the network's time, the least of %d cuts, found \"%.0f %%\"",
                100 * least, kTimedCuts, 100 * share);
  return config_error(std::string("stages.prune.latency: expected at least ") + text +
                      ". Raise it or max_ratio, or loosen `targets` and `ignore`");
}

Result<double> share_of_time(const pipeline::Session& session, const pipeline::Limit& limit) {
  if (limit.is_share) return limit.value;
  const graph::Graph* const one[] = {&session.model.graph};
  CTK_TRY(const std::vector<double> times, pipeline::median_times_us(session, one));
  return limit.value / times[0];
}

}  // namespace ctk::pruning
