// Thresholds of early exits: least mean cost of a sample, so that at least a given number come out right.
// In:  confidence [exits][samples], is_right [exits + 1][samples], cost [exits + 1].
// Out: thresholds [exits].
// Cost: O(exits * samples * log samples) a sweep; a handful of sweeps for each of kPrices.
// Source: thresholds on the largest softmax probability, as in Teerapittayanon et al., BranchyNet, 2016 (there on
// entropy). Differs: set together under one limit: coordinate descent with a price on wrong answers, then under the
// limit.
#include "compress/early_exit/thresholds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ctk::exits {
namespace {

constexpr int kMostSweeps = 32;
// A wrong answer costs from 1/64 to 2^12 runs of the whole network, by steps of half a power of two.
constexpr int kFirstPrice = -6, kPrices = 37;
constexpr float kMargin = 1.0f / 1024;  // below the least sure sample, where all leave

// Where a sample that has come to exit `from` leaves.
std::size_t way_out(const Outcomes& outcomes, const std::vector<float>& thresholds, std::size_t sample,
                    std::size_t from) {
  while (from < thresholds.size() && !(outcomes.confidence[from][sample] >= thresholds[from])) ++from;
  return from;
}

float between(float last, float next) {
  const auto middle = static_cast<float>((static_cast<double>(last) + static_cast<double>(next)) / 2);
  return middle > next ? middle : last;
}

struct Aim {
  LeastRight limit;
  double price = 0;  // of a sample that comes out wrong, in the unit of cost
};

// The threshold of `exit` with which mean cost and price are least, given the others.
float best_threshold(const Outcomes& outcomes, const std::vector<float>& thresholds, const std::vector<double>& cost,
                     std::size_t exit, const Aim& aim) {
  std::vector<float> without = thresholds;
  without[exit] = kNobody;
  std::vector<std::size_t> here, later(outcomes.samples());
  const std::vector<bool>& end = outcomes.is_right.back();
  const Leaving before = leave(outcomes, without, cost);
  auto right = static_cast<std::ptrdiff_t>(before.right), changed = static_cast<std::ptrdiff_t>(before.changed);
  for (std::size_t s = 0; s < outcomes.samples(); ++s) {
    if (way_out(outcomes, without, s, 0) < exit) continue;
    here.push_back(s);
    later[s] = way_out(outcomes, without, s, exit + 1);
  }
  const std::vector<float>& sure = outcomes.confidence[exit];
  std::ranges::stable_sort(here, [&](std::size_t a, std::size_t b) { return sure[a] > sure[b]; });
  const auto is_enough = [&] {
    return aim.limit.is_kept_by(static_cast<std::size_t>(right), static_cast<std::size_t>(changed));
  };
  double saved = 0, most = is_enough() ? 0 : -std::numeric_limits<double>::infinity();
  float best = kNobody;
  for (std::size_t i = 0; i < here.size(); ++i) {
    const std::size_t s = here[i];
    const int gained = static_cast<int>(outcomes.is_right[exit][s]) - static_cast<int>(outcomes.is_right[later[s]][s]);
    saved += cost[later[s]] - cost[exit] + aim.price * gained;
    right += gained;
    changed += static_cast<int>(outcomes.is_right[exit][s] != end[s]) -
               static_cast<int>(outcomes.is_right[later[s]][s] != end[s]);
    const bool is_last = i + 1 == here.size();
    if (!is_last && sure[here[i + 1]] == sure[s]) continue;  // they leave together
    if (!is_enough() || saved <= most) continue;
    most = saved;
    best = is_last ? sure[s] * (1 - kMargin) : between(sure[s], sure[here[i + 1]]);
  }
  return best;
}

// From the last exit to the first: what a sample would do later is known by then.
std::vector<float> sweep(const Outcomes& outcomes, std::vector<float> thresholds, const std::vector<double>& cost,
                         const Aim& aim) {
  for (int i = 0; i < kMostSweeps; ++i) {
    const std::vector<float> before = thresholds;
    for (std::size_t e = thresholds.size(); e-- > 0;)
      thresholds[e] = best_threshold(outcomes, thresholds, cost, e, aim);
    if (thresholds == before) break;
  }
  return thresholds;
}

}  // namespace

bool LeastRight::is_kept_by(std::size_t right, std::size_t changed) const {
  return static_cast<double>(right) >= static_cast<double>(least) + errors * std::sqrt(static_cast<double>(changed));
}

Leaving leave(const Outcomes& outcomes, const std::vector<float>& thresholds, const std::vector<double>& cost) {
  Leaving leaving{thresholds, std::vector<std::size_t>(thresholds.size() + 1), 0, 0, 0};
  for (std::size_t s = 0; s < outcomes.samples(); ++s) {
    const std::size_t way = way_out(outcomes, thresholds, s, 0);
    ++leaving.samples[way];
    leaving.right += outcomes.is_right[way][s] ? 1 : 0;
    leaving.changed += outcomes.is_right[way][s] != outcomes.is_right.back()[s] ? 1 : 0;
  }
  for (std::size_t way = 0; way < cost.size(); ++way)
    leaving.mean_cost += cost[way] * static_cast<double>(leaving.samples[way]);
  leaving.mean_cost /= std::max<double>(1, static_cast<double>(outcomes.samples()));
  return leaving;
}

Leaving choose_thresholds(const Outcomes& outcomes, const std::vector<double>& cost, const LeastRight& limit) {
  const std::vector<float> none(outcomes.confidence.size(), kNobody);
  Leaving best = leave(outcomes, sweep(outcomes, none, cost, {limit, 0}), cost);
  for (int step = 0; step < kPrices; ++step) {
    const double price = cost.back() * std::exp2(kFirstPrice + step / 2.0);
    const std::vector<float> start = sweep(outcomes, none, cost, {{}, price});
    const Leaving priced = leave(outcomes, start, cost);
    if (!limit.is_kept_by(priced.right, priced.changed)) continue;
    Leaving found = leave(outcomes, sweep(outcomes, start, cost, {limit, 0}), cost);
    if (found.mean_cost < best.mean_cost) best = std::move(found);
  }
  return best;
}

}  // namespace ctk::exits
