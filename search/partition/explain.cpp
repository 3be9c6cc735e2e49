#include "search/partition/explain.h"

#include <algorithm>
#include <cmath>

namespace ctk::search::partition {

std::vector<Segment> segments_of(const Task& task, const std::vector<std::size_t>& unit_of) {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < unit_of.size(); ++i) {
    if (segments.empty() || segments.back().unit != unit_of[i])
      segments.push_back({unit_of[i], i, i, 0, task.units[unit_of[i]].launch_us});
    segments.back().end = i + 1;
    segments.back().compute_us += task.nodes[i].on[unit_of[i]].us;
  }
  return segments;
}

std::vector<Transfer> transfers_of(const Task& task, const std::vector<std::size_t>& unit_of) {
  std::vector<Transfer> transfers;
  for (std::size_t v = 0; v < task.values.size(); ++v) {
    const Value& value = task.values[v];
    const std::size_t from = value.producer == kOutside ? 0 : unit_of[value.producer];
    std::vector<bool> is_there(task.units.size(), false);
    is_there[from] = true;
    const auto bring = [&](std::size_t to) {
      if (is_there[to]) return;
      is_there[to] = true;
      transfers.push_back({v, from, to, transfer_us(task, value, from, to)});
    };
    for (std::size_t consumer : value.consumers) bring(unit_of[consumer]);
    if (value.is_output) bring(0);
  }
  return transfers;
}

std::vector<Fallback> fallbacks_of(const Task& task, const std::vector<std::size_t>& unit_of) {
  std::vector<Fallback> fallbacks;
  const double total = cost_of(task, unit_of).total_us;
  for (std::size_t i = 0; i < unit_of.size(); ++i) {
    const std::vector<NodeTime>& on = task.nodes[i].on;
    if (task.units[unit_of[i]].kind != "cpu") continue;
    std::size_t refused = on.size();
    for (std::size_t u = 0; u < on.size() && refused == on.size(); ++u) {
      if (task.units[u].kind != "cpu" && !std::isfinite(on[u].us)) refused = u;
    }
    if (refused == on.size()) continue;
    // The same placement with this node free and on whichever unit then costs least.
    Task without = task;
    double least = kCannotRun;
    for (std::size_t u = 0; u < on.size(); ++u) {
      without.nodes[i].on[u] = {0, u == unit_of[i] ? on[u].form : "", "", ""};
      if (i > 0 && without.nodes[i].on[u].form.empty()) without.nodes[i].on[u].form = task.nodes[i - 1].on[u].form;
      std::vector<std::size_t> moved = unit_of;
      moved[i] = u;
      least = std::min(least, cost_of(without, moved).total_us);
    }
    fallbacks.push_back({i, refused, unit_of[i], on[refused].reason, std::max(0.0, total - least)});
  }
  return fallbacks;
}

}  // namespace ctk::search::partition
