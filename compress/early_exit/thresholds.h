// How sure a head must be for a sample to leave there.
#pragma once

#include <cstddef>
#include <vector>

namespace ctk::exits {

// Samples as the ways out see them; the last way is the network's own end.
struct Outcomes {
  std::vector<std::vector<float>> confidence;  // [exits][samples], 0 to 1
  std::vector<std::vector<bool>> is_right;     // [exits + 1][samples]
  std::size_t samples() const { return is_right.empty() ? 0 : is_right[0].size(); }
};

constexpr float kNobody = 2;  // a threshold that no confidence reaches

struct Leaving {
  std::vector<float> thresholds;       // [exits]
  std::vector<std::size_t> samples;    // [exits + 1]: a sample leaves at the first exit whose threshold it reaches
  std::size_t right = 0, changed = 0;  // changed: right where the end is wrong, or the other way round
  double mean_cost = 0;
};

// `least` samples or more come out right, with `errors` standard errors of their number to spare: that of a difference
// to the end is the root of how many changed. What is fitted to samples loses more on others.
struct LeastRight {
  std::size_t least = 0;
  double errors = 0;
  bool is_kept_by(std::size_t right, std::size_t changed) const;
};

// `cost`: [exits + 1], of a sample that leaves there, ascending.
Leaving leave(const Outcomes& outcomes, const std::vector<float>& thresholds, const std::vector<double>& cost);

// Thresholds under which enough samples come out right, at small mean cost. Sweeps let each exit in turn
// take the least mean cost that it can given the others, until nothing changes. They start from no exits, and from what
// exits take when a wrong answer has a price instead of a limit, for a row of prices, so that no exit uses up what
// others would make more of; the cheapest end is taken. With one exit the least there is. A threshold lies midway
// between the last sample that leaves and the next that does not. The network's own end must be right often enough:
// with nobody leaving early the answer is there.
Leaving choose_thresholds(const Outcomes& outcomes, const std::vector<double>& cost, const LeastRight& limit);

}  // namespace ctk::exits
